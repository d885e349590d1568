// Terms of the sums that a value goes into, with the numbers that they are multiplied by.
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

  /// Whether `value`, which is `x` or nothing, is added to a sum that has a term of x with the
  /// other sign: a + value with x = b - a, so that b takes the place of a.
  bool goes_over(ValueId value, ValueId x) const;

 private:
  using Terms = std::unordered_map<std::int32_t, double>;  // value: its factor
  void add(ValueId value, double factor, int depth, Terms& terms) const;
  bool meets_opposite(ValueId value, double factor, int depth, const Terms& terms) const;

  const Graph& graph_;
  const NoiseMap& numbers_;
  const std::vector<std::vector<NodeId>>& readers_;
};

}  // namespace tandem
