#include "engine/training/divergence/label_checks.h"

#include <algorithm>
#include <numeric>

#include "engine/losses/loss_weights.h"
#include "engine/training/config/config_value.h"
#include "engine/training/data/number_text.h"
#include "engine/training/data/shown_problems.h"
#include "engine/training/divergence/divergence_cause.h"
#include "engine/training/weight_sums.h"

namespace tandem {
namespace {

/// Calls `use` with so many samples of a field at a time, as numbers, and the first one's number.
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
    use(values, first);
  }
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
  if (const auto ignored = term.integer("ignore_index"))
    d.got = "ignore_index = " + std::to_string(*ignored);
  d.fix = "correct the labels, ignore_index or class_weights";
  problems.push_back(std::move(d));
}

}  // namespace tandem
