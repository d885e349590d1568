#include "engine/train/divergence/label_checks.h"

#include <algorithm>
#include <numeric>

#include "engine/config/keys/config_value.h"
#include "engine/data/number_text.h"
#include "engine/data/shown_problems.h"
#include "engine/losses/loss_weights.h"
#include "engine/train/divergence/divergence_cause.h"
#include "engine/train/evaluation/evaluation.h"
#include "engine/train/graph/weight_sums.h"

namespace tandem {
namespace {

/// Calls `use` with that many samples of a field at a time, as numbers, and the first one's number,
/// until it returns false.
template <class Use>
void read_in_pieces(const DataSource& source, int field, Use use) {
  constexpr std::int64_t piece = 4096;
  TensorType type = source.fields()[static_cast<std::size_t>(field)].sample;
  type.shape.insert(type.shape.begin(), 0);
  std::vector<std::int64_t> samples;
  for (std::int64_t first = 0; first < source.samples(); first += piece) {
    samples.resize(static_cast<std::size_t>(std::min(piece, source.samples() - first)));
    std::iota(samples.begin(), samples.end(), first);
    type.shape[0] = static_cast<std::int64_t>(samples.size());
    HostTensor values(type);
    source.fill(field, samples, nullptr, values.data());
    if (!use(values, first)) return;
  }
}

bool has_other(const HostTensor& labels, std::int64_t ignored) {
  for (std::int64_t i = 0; i < labels.type().elements(); ++i) {
    if (labels.number(i) != static_cast<double>(ignored)) return true;
  }
  return false;
}

}  // namespace

void check_signs(const LossTerm& term, const DataSource& source, const std::string& meaning,
                 std::vector<Diagnostic>& problems) {
  const int field = source.find_field(term.labels);
  if (field < 0) return;
  const std::size_t before = problems.size();
  std::int64_t count = 0;
  read_in_pieces(source, field, [&](const HostTensor& values, std::int64_t first) {
    const std::int64_t a_sample = values.type().elements() / values.shape()[0];
    for (std::int64_t i = 0; i < values.type().elements(); ++i) {
      const double value = values.number(i);
      if (value == -1 || value == 1) continue;
      if (++count > static_cast<std::int64_t>(shown_problems)) continue;
      Diagnostic& d = problems.emplace_back();
      set_place(d, source.describe(field, first + i / a_sample));
      d.path = "data.fields." + term.labels;
      d.message = "a value of the field is no sign: " + meaning;
      d.expected = "-1 or 1";
      d.got = number_text(value);
    }
    return true;
  });
  tell_others(problems, before, count, "rows");
  if (count > 0) problems[before].fix = "labels are -1 for no and 1 for yes";
}

void check_any_label_counts(const LossTerm& term, const DataSource& source,
                            std::vector<Diagnostic>& problems) {
  const int field = source.find_field(term.labels);
  if (!weighs_labels(term) || field < 0 || term.reduction != LossReduction::mean) return;
  const DType dtype = source.fields()[static_cast<std::size_t>(field)].sample.dtype;
  if (!is_integer(dtype) || source.samples() == 0) return;
  LossTerm own = term;
  own.sample_weights.clear();
  constexpr std::size_t piece = 4096;
  std::vector<std::int64_t> samples;
  for (std::int64_t first = 0; first < source.samples();) {
    samples.resize(std::min(piece, static_cast<std::size_t>(source.samples() - first)));
    std::iota(samples.begin(), samples.end(), first);
    if (weight_sum(own, source, samples) != 0) return;
    first += static_cast<std::int64_t>(samples.size());
  }
  Diagnostic d = at(term.where, "data.fields." + term.labels,
                    "no label of the loss term \"" + term.name +
                        "\" counts: its mean would be 0 / 0, which is nan");
  d.expected = "a label that neither ignore_index nor a class weight of 0 leaves out";
  if (const auto ignored = class_options(term).ignore_index)
    d.got = "ignore_index = " + std::to_string(*ignored);
  d.fix = "correct the labels, ignore_index or class_weights";
  problems.push_back(std::move(d));
}

void check_any_label_counts(const LabelMean& mean, const DataSource& source,
                            std::vector<Diagnostic>& problems) {
  const int field = source.find_field(mean.labels);
  if (field < 0 || source.samples() == 0) return;
  bool any = false;
  read_in_pieces(source, field, [&](const HostTensor& values, std::int64_t) {
    any = has_other(values, mean.ignored);
    return !any;
  });
  if (any) return;
  Diagnostic& d = problems.emplace_back();
  d.path = "data.fields." + mean.labels;
  d.message =
      "no label of the loss at " + mean.path + " counts: its mean would be 0 / 0, which is nan";
  d.expected = "a label that its ignore_index does not leave out";
  d.got = "only " + std::to_string(mean.ignored);
  d.fix = "correct the labels";
}

std::vector<Diagnostic> weightless_means(const std::vector<LabelMean>& inside,
                                         const DataSource& source,
                                         std::span<const std::int64_t> samples,
                                         const std::string& what) {
  std::vector<Diagnostic> found;
  for (const LabelMean& mean : inside) {
    const int field = source.find_field(mean.labels);
    if (field < 0 || samples.empty()) continue;
    HostTensor values(field_types(source, std::ssize(samples)).at(mean.labels));
    source.fill(field, samples, nullptr, values.data());
    if (has_other(values, mean.ignored)) continue;
    Diagnostic& d = found.emplace_back();
    d.path = mean.path;
    d.message = "the mean over " + what + " is 0 / 0: its ignore_index leaves out all of them";
    d.expected = "a label that counts";
    d.got = "only " + std::to_string(mean.ignored);
    d.fix = "use a larger batch_size, or leave out samples without a label that counts";
  }
  return found;
}

std::string weightless_steps(const RunConfig& config, const std::vector<LabelMean>& inside,
                             const DataSource& source, std::span<const std::int64_t> samples,
                             std::int64_t steps) {
  using Samples = std::span<const std::int64_t>;
  constexpr std::size_t most_samples = std::size_t{1} << 20;
  samples = samples.first(std::min(samples.size(), most_samples));
  const auto batch = static_cast<std::size_t>(config.batch_size);
  const bool drops = config.data && config.data->drop_last;
  const auto told = [&](const std::string& mean, const auto& counts) -> std::string {
    std::int64_t looked_at = 0, first = 0, none = 0;
    for (std::size_t at = 0; at < samples.size() && looked_at < steps; at += batch) {
      const Samples some = samples.subspan(at, std::min(batch, samples.size() - at));
      if (drops && some.size() < batch) break;
      ++looked_at;
      try {
        if (counts(some)) continue;
      } catch (const Error&) {  // from a sample that cannot be read, which its step reports
        continue;
      }
      if (none++ == 0) first = looked_at;
    }
    if (none == 0) return "";
    return "of the loss " + mean + " no label counts in " + std::to_string(none) +
           " of the first " + std::to_string(looked_at) + " steps of an epoch, the first of them " +
           std::to_string(first) +
           ": the mean of such a step is 0 / 0, as PyTorch's, and ends the run; use a larger "
           "batch_size, reduction = \"sum\", or leave out samples without a label that counts";
  };
  for (const LossTerm& term : config.loss.terms) {
    const std::string& field = weighs_labels(term) ? term.labels : term.sample_weights;
    if (!has_weights(term) || source.find_field(field) < 0) continue;
    if (term.reduction != LossReduction::mean) continue;
    std::string text = told("term \"" + term.name + "\"",
                            [&](Samples some) { return weight_sum(term, source, some) != 0; });
    if (!text.empty()) return text;
  }
  for (const LabelMean& mean : inside) {
    std::string text = told("at " + mean.path, [&](Samples some) {
      return weightless_means({mean}, source, some, "").empty();
    });
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace tandem
