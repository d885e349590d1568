// The steps of optimizers over elements, rows and tensors, compiled once for each instruction set:
// a table of plain functions by the rule's place in the list (engine/optimizers/rules.h).
#pragma once

#include <cstdint>

#include "kernels/cpu/isa.h"

namespace tandem {

/// Rows of a matrix, or a part of a vector, as kinds with factored statistics walk over it.
struct FactoredBlock {
  float* w = nullptr;  // [rows, columns], as the gradient
  const float* g = nullptr;
  float* row_states = nullptr;     // [rows]; null of a vector
  float* column_states = nullptr;  // [columns]; of a vector its state
  float* column_sums = nullptr;    // [columns], for statistics; null of a vector
  float mean_of_rows = 0;          // mean of the states of all rows of the matrix
  std::int64_t rows = 1, columns = 0;
};

/// `factors`: the rule's Step<float>. All take any n; states that the rule does not keep are null.
struct RuleLoops {
  /// In place: n elements, or one row of n where the rule needs whole rows; a state with one number
  /// a row has that number. Null for rules of whole tensors.
  void (*whole)(const void* factors, float* weights, float* const* states, const float* gradients,
                std::int64_t n) = nullptr;
  /// Like `whole`, for a row in two halves.
  void (*split)(const void* factors, std::uint16_t* tops, std::int16_t* tails, float* const* states,
                const float* gradients, std::int64_t n) = nullptr;
  /// Only for rules of whole tensors. The first walk replaces the states of n elements; sums[k] +=
  /// the squares of term k.
  void (*first)(const void* factors, const float* weights, float* const* states,
                const float* gradients, std::int64_t n, double* sums) = nullptr;
  /// The second replaces the weights. `factor`: what the rule makes of the sums.
  void (*last)(const void* factors, float factor, float* weights, float* const* states,
               std::int64_t n) = nullptr;
  /// Only for rules with factored statistics. The first walk: sums[0] += the squares of masters,
  /// column_sums += statistics; states of rows move, and that of a vector.
  void (*statistics)(const void* factors, const FactoredBlock& block, double* sums) = nullptr;
  /// The states of n columns, from the sums over `rows`.
  void (*move_columns)(const void* factors, float* states, const float* sums, float rows,
                       std::int64_t n) = nullptr;
  /// The second walk: sums[1] += the squares of directions.
  void (*square_directions)(const void* factors, const FactoredBlock& block,
                            double* sums) = nullptr;
  /// The third replaces the weights.
  void (*step_directions)(const void* factors, float factor, const FactoredBlock& block) = nullptr;
};

// Arrays indexed by rule.
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
