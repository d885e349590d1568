#include "engine/train/graph/weight_sums.h"

#include <algorithm>
#include <optional>

#include "engine/train/evaluation/evaluation.h"

namespace tandem {
namespace {

std::optional<HostTensor> read_field(const DataSource& source, const std::string& name,
                                     std::span<const std::int64_t> samples) {
  const int field = name.empty() ? -1 : source.find_field(name);
  if (field < 0) return std::nullopt;
  const auto count = static_cast<std::int64_t>(samples.size());
  HostTensor values(field_types(source, count).at(name));
  source.fill(field, samples, nullptr, values.data());
  return values;
}

}  // namespace

double weight_sum(const LossTerm& term, const DataSource& source,
                  std::span<const std::int64_t> samples) {
  constexpr std::size_t piece = 4096;
  double sum = 0;
  for (std::size_t at = 0; at < samples.size(); at += piece) {
    const auto some = samples.subspan(at, std::min(piece, samples.size() - at));
    std::optional<HostTensor> labels;
    if (weighs_labels(term)) labels = read_field(source, term.labels, some);
    const std::optional<HostTensor> weights = read_field(source, term.sample_weights, some);
    sum += weight_sum(term, labels ? &*labels : nullptr, weights ? &*weights : nullptr);
  }
  return sum;
}

}  // namespace tandem
