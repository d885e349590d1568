#include "engine/train/divergence/sample_checks.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "engine/data/shown_problems.h"
#include "engine/losses/loss.h"
#include "engine/train/divergence/divergence_cause.h"
#include "engine/train/evaluation/evaluation.h"

namespace tandem {
namespace {

/// What a term reads of some samples.
class TermFields {
 public:
  TermFields(const LossTerm& term, const Shape& scores, const DataSource& source)
      : source_(source), labels_(source.find_field(term.labels)) {
    sample_.scores = scores;
    for (const std::string& name : term.other_fields)
      others_.push_back(name.empty() ? -1 : source.find_field(name));
    sample_.fields.resize(term.kind->fields.size());
  }

  bool has_labels() const {
    return labels_ >= 0 && is_integer(source_.fields()[labels_].sample.dtype);
  }
  void read(std::span<const std::int64_t> samples) {
    label_values_ = of_field(labels_, samples).integers();
    each_ = label_values_.size() / samples.size();
    other_values_.clear();
    for (const int other : others_)
      other_values_.push_back(other < 0 ? HostTensor{} : of_field(other, samples));
  }
  /// A sample of those that were read last.
  const LossSample& sample(std::size_t i) {
    const auto first = label_values_.begin() + static_cast<std::ptrdiff_t>(i * each_);
    sample_.labels.assign(first, first + static_cast<std::ptrdiff_t>(each_));
    for (std::size_t k = 0; k < others_.size(); ++k) {
      if (others_[k] >= 0)
        sample_.fields[k] = other_values_[k].number(static_cast<std::int64_t>(i));
    }
    return sample_;
  }

 private:
  HostTensor of_field(int field, std::span<const std::int64_t> samples) const {
    TensorType type = source_.fields()[static_cast<std::size_t>(field)].sample;
    type.shape.insert(type.shape.begin(), std::ssize(samples));
    HostTensor values(type);
    source_.fill(field, samples, nullptr, values.data());
    return values;
  }

  const DataSource& source_;
  const int labels_;
  std::vector<int> others_;  // -1: there is none
  std::vector<std::int64_t> label_values_;
  std::size_t each_ = 0;  // labels of a sample
  std::vector<HostTensor> other_values_;
  LossSample sample_;
};

}  // namespace

void check_samples(const LossTerm& term, const Shape& scores, const DataSource& source,
                   std::vector<Diagnostic>& problems) {
  TermFields fields(term, scores, source);
  if (term.kind->refuse_sample == nullptr || !fields.has_labels()) return;
  constexpr std::int64_t piece = 1024;
  const std::size_t before = problems.size();
  std::int64_t count = 0;
  std::vector<std::int64_t> samples;
  for (std::int64_t first = 0; first < source.samples(); first += piece) {
    samples.resize(static_cast<std::size_t>(std::min(piece, source.samples() - first)));
    std::iota(samples.begin(), samples.end(), first);
    fields.read(samples);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      auto problem = term.kind->refuse_sample(term, fields.sample(i));
      if (!problem || ++count > static_cast<std::int64_t>(shown_problems)) continue;
      Diagnostic& d = problems.emplace_back();
      set_place(d, source.describe(source.find_field(problem->field), samples[i]));
      d.path = "data.fields." + problem->field;
      d.message = problem->message + ": loss term \"" + term.name + "\" (" +
                  std::string(term.kind->name) + ")";
      d.expected = std::move(problem->expected);
      d.got = std::move(problem->got);
      d.fix = std::move(problem->fix);
    }
  }
  tell_others(problems, before, count, "rows");
}

}  // namespace tandem
