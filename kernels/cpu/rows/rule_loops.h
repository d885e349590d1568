// The steps of optimizers over elements, rows and tensors, compiled once for each instruction set:
// a table of plain functions by the rule's place in the list (engine/optimizers/rules.h).
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

namespace tandem {

/// `factors`: the rule's Step<float>. All take any n; states that the rule does not keep are null.
struct RuleLoops {
  /// In place: n elements, or one row of n where the rule needs whole rows; of a state with one
  /// number a row that number. Null for rules of whole tensors.
  void (*whole)(const void* factors, float* weights, float* const* states, const float* gradients,
                std::int64_t n);
  /// The same of a row in two halves.
  void (*split)(const void* factors, std::uint16_t* tops, std::int16_t* tails, float* const* states,
                const float* gradients, std::int64_t n);
  /// Rules of whole tensors alone. The first walk replaces the states of n elements; sums[k] += the
  /// squares of term k.
  void (*first)(const void* factors, const float* weights, float* const* states,
                const float* gradients, std::int64_t n, double* sums);
  /// The second replaces the weights. `factor`: what the rule makes of the sums.
  void (*last)(const void* factors, float factor, float* weights, float* const* states,
               std::int64_t n);
};

// By rule.
extern const RuleLoops* const rule_loops_base;
extern const RuleLoops* const rule_loops_avx2;
extern const RuleLoops* const rule_loops_avx512;

inline const RuleLoops& rule_loops(int rule, Isa isa) {
  const RuleLoops* const all = isa == Isa::avx512 ? rule_loops_avx512
                               : isa == Isa::avx2 ? rule_loops_avx2
                                                  : rule_loops_base;
  return all[rule];
}

}  // namespace tandem
