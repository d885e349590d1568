// FTRL with the sparse group lasso on rows of D elements (Yue et al. 2021, "Adaptive Optimizers
// with Sparse Group Lasso for Neural Networks in CTR Prediction"; Ni et al. 2019): n and z as in
// ftrl, x = sign(z') * l1 - z' and 0 where |z'| <= l1; w = max(0, 1 - l21 * sqrt(D) / |x|) * x /
// ((beta + n'^p) / lr + l2).
#pragma once

#include "engine/optimizers/ftrl.h"

namespace tandem {

struct GroupFtrl : FtrlDefaults<true> {
  static constexpr const char* op = "GroupFtrlUpdate";
  static constexpr bool whole_row = true;
  static constexpr OptimizerName<Settings> names[] = {{"group_ftrl", "Yue et al. 2021", {}, true}};

  template <class S, class T>
  static TANDEM_FORMULA T first(const Step<S>& a, T w, T grad, T* states) {
    accumulate(a, w, grad, states[0], states[1]);
    const T x = threshold(a, states[1]);
    return x * x;
  }
  template <class S>
  static TANDEM_FORMULA S factor(const Step<S>& a, S sum_of_squares, S columns, S&) {
    const S limit = a.l21 * formula_sqrt(columns), norm = formula_sqrt(sum_of_squares);
    if (norm <= limit) return S(0);
    return S(1) - limit / norm;
  }
  template <class S, class T>
  static TANDEM_FORMULA T last(const Step<S>& a, T, T, T* states, S factor) {
    return quotient(a, threshold(a, states[1]) * factor, power(a, states[0]));
  }
};

}  // namespace tandem
