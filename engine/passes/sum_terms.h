// Terms of the sums that a value is added to, with their factors.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/passes/noise.h"

namespace tandem {

class SumTerms {
 public:
  SumTerms(const NoiseMap& numbers, const std::vector<std::vector<NodeId>>& readers)
      : graph_(numbers.graph()), numbers_(numbers), readers_(readers) {}

  /// Whether `value`, which is `x` or 0, is added to a sum that has a term of x with the opposite
  /// sign: a + value with x = b - a, which switches from a to b.
  bool goes_over(ValueId value, ValueId x) const;

 private:
  using Terms = std::unordered_map<std::int32_t, double>;  // factor by value
  void add(ValueId value, double factor, int depth, Terms& terms) const;
  bool meets_opposite(ValueId value, double factor, int depth, const Terms& terms) const;

  const Graph& graph_;
  const NoiseMap& numbers_;
  const std::vector<std::vector<NodeId>>& readers_;
};

}  // namespace tandem
