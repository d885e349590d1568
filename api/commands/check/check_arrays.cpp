// Checks data that is no text table for `tandem data check`: unreadable samples, and ranges.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "api/commands/check/checked_data.h"
#include "engine/data/shown_problems.h"
#include "engine/train/divergence/divergence_cause.h"

namespace tandem::api {
namespace {

/// Samples of a split that cannot be read.
class BrokenSamples {
 public:
  /// `left_out`: samples that were already dropped when the data was opened.
  explicit BrokenSamples(std::vector<Diagnostic> left_out)
      : problems_(std::move(left_out)), opened_without_(std::ssize(problems_)) {}

  /// Counts a sample once, whichever of its fields cannot be read.
  void add(std::int64_t sample, const Error& why) {
    if (!samples_.insert(sample).second || problems_.size() >= shown_problems) return;
    problems_.push_back(why.diagnostics().at(0));
  }
  std::int64_t opened() const { return std::ssize(samples_); }
  std::int64_t count() const { return opened_without_ + opened(); }
  /// Adds the first problems; a fix that is equal for all is given only once.
  void report(std::vector<Diagnostic>& to) const {
    const std::size_t before = to.size();
    for (std::size_t i = 0; i < std::min(problems_.size(), shown_problems); ++i) {
      to.push_back(problems_[i]);
      if (i > 0 && to.back().fix == problems_[0].fix) to.back().fix.clear();
    }
    tell_others(to, before, count(), "samples");
  }

 private:
  std::vector<Diagnostic> problems_;
  std::int64_t opened_without_;
  std::set<std::int64_t> samples_;
};

/// Whether an error concerns one sample only, so that others may still be readable.
bool is_of_a_sample(const Error& error) {
  return error.kind() == ErrorKind::data || error.kind() == ErrorKind::runtime;
}

/// Reads the values of the readable samples, one after the other; returns how many there are.
std::int64_t read_samples(const tandem::DataSource& source, int field,
                          const std::vector<std::int64_t>& samples, HostTensor& values,
                          BrokenSamples& broken) {
  try {
    source.fill(field, samples, nullptr, values.data());
    return std::ssize(samples);
  } catch (const Error& error) {
    if (!is_of_a_sample(error)) throw;
  }
  const std::size_t each = source.fields()[static_cast<std::size_t>(field)].sample.bytes();
  std::int64_t read = 0;
  for (const std::int64_t& sample : samples) {
    auto* const to = static_cast<std::uint8_t*>(values.data());
    try {
      source.fill(field, std::span(&sample, 1), nullptr,
                  to + static_cast<std::size_t>(read) * each);
      ++read;
    } catch (const Error& error) {
      if (!is_of_a_sample(error)) throw;
      broken.add(sample, error);
    }
  }
  return read;
}

CheckedSplit check_source(const std::string& name, const tandem::DataSource& source,
                          BrokenSamples broken, std::vector<Diagnostic>& problems) {
  constexpr std::int64_t most_samples = 256, most_values = std::int64_t{1} << 18;
  CheckedSplit split;
  split.name = name;
  std::vector<Diagnostic> found;
  for (std::size_t f = 0; f < source.fields().size(); ++f) {
    const tandem::DataField& field = source.fields()[f];
    const int index = static_cast<int>(f);
    CheckedColumn column;
    column.name = field.name;
    std::vector<std::int64_t> samples;
    const std::int64_t each = std::max<std::int64_t>(field.sample.elements(), 1);
    const std::int64_t piece = std::clamp<std::int64_t>(most_values / each, 1, most_samples);
    for (std::int64_t first = 0; first < source.samples(); first += piece) {
      samples.clear();
      for (std::int64_t i = first; i < std::min(first + piece, source.samples()); ++i) {
        samples.push_back(i);
      }
      TensorType type = field.sample;
      type.shape.insert(type.shape.begin(), static_cast<std::int64_t>(samples.size()));
      HostTensor values(type);
      const std::int64_t read = read_samples(source, index, samples, values, broken);
      for (std::int64_t i = 0; i < read * field.sample.elements(); ++i) {
        const double value = values.number(i);
        ++column.values;
        if (!std::isfinite(value)) {
          ++column.bad_numbers;
          continue;
        }
        column.least = std::min(column.least, value);
        column.greatest = std::max(column.greatest, value);
      }
    }
    split.fields.push_back({field.name, field.sample, {column}});
    const std::vector<Diagnostic> nan =
        nan_diagnostics(source, index, source.nan_samples(index), shown_problems);
    found.insert(found.end(), nan.begin(), nan.end());
  }
  broken.report(problems);
  problems.insert(problems.end(), found.begin(), found.end());
  split.samples = source.samples() - broken.opened();
  split.bad = broken.count();
  return split;
}

}  // namespace

CheckedData check_arrays(const RunConfig& run, const OpenOptions& options) {
  CheckedData to;
  // First those of the training data, then those of the held-out data.
  std::array<std::vector<Diagnostic>, 2> left_out;
  OpenOptions open = options;
  open.on_bad_pictures = [&](bool held_out, std::vector<Diagnostic> why) {
    std::vector<Diagnostic>& all = left_out[held_out ? 1 : 0];
    all.insert(all.end(), why.begin(), why.end());
  };
  const DataSets sets = open_data(*run.data, open);
  to.warnings = sets.warnings;
  to.splits.push_back(
      check_source("train", *sets.train, BrokenSamples(std::move(left_out[0])), to.problems));
  to.splits.back().tokens = sets.train_tokens;
  if (sets.eval) {
    to.splits.push_back(
        check_source("eval", *sets.eval, BrokenSamples(std::move(left_out[1])), to.problems));
    to.splits.back().tokens = sets.eval_tokens;
  }
  const auto sources = [&](const OpenOptions&) {
    std::vector<std::shared_ptr<const tandem::DataSource>> splits{sets.train};
    // A held-out part lies in the same files, which are checked as a whole.
    if (sets.eval && run.data->eval_fraction == 0) splits.push_back(sets.eval);
    return splits;
  };
  compare_with_model(run, {}, sources, to);
  return to;
}

}  // namespace tandem::api
