// FBGEMM's EXACT_ROWWISE_ADAGRAD: Adagrad with one sum for a row of D elements, sum += (1/D) sum_j
// g_j^2; w -= rate / (sqrt(sum) + eps) * g.
#pragma once

#include "engine/optimizers/adagrad.h"

namespace tandem {

struct RowwiseAdagrad : AdagradDefaults {
  static constexpr const char* op = "RowwiseAdagradUpdate";
  static constexpr double flops = 6;
  static constexpr bool whole_row = true;
  static constexpr OptimizerName<Settings> names[] = {
      {"rowwise_adagrad", "FBGEMM's EXACT_ROWWISE_ADAGRAD", {.epsilon = 1e-8}}};
  static constexpr OptimizerState states[] = {{.name = "row_sum",
                                               .shape = StateShape::one_per_row,
                                               .start = "initial_accumulator",
                                               .squares = true}};

  template <class S, class T>
  static TANDEM_FORMULA T gradient(const Step<S>& a, T w, T grad) {
    return grad * a.scale + w * a.weight_decay;
  }
  template <class S, class T>
  static TANDEM_FORMULA T first(const Step<S>& a, T w, T grad, T*) {
    const T g = gradient(a, w, grad);
    return g * g;
  }
  template <class S>
  static TANDEM_FORMULA S factor(const Step<S>& a, S sum_of_squares, S columns, S& row_sum) {
    row_sum = row_sum + sum_of_squares / columns;
    return a.rate / (formula_sqrt(row_sum) + a.epsilon);
  }
  template <class S, class T>
  static TANDEM_FORMULA T last(const Step<S>& a, T w, T grad, T*, S factor) {
    return w - factor * gradient(a, w, grad);
  }
};

}  // namespace tandem
