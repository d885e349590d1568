// Optimizers of embedding tables, which visit the rows that a batch touches: their settings, the
// factors of one step, and what they do to one element. T is the type computed in.
#pragma once

#include <cassert>
#include <cmath>
#include <cstdint>

#include "kernels/shared/host_device.h"
#include "kernels/shared/optimizer.h"

namespace tandem {

/// The kinds that kernels know; their operators are in update_rules.h.
enum class RowOptimizer { sgd, adam, adagrad, rowwise_adagrad, ftrl, group_ftrl };

/// A kind has at most so many states.
inline constexpr int most_states = 2;

/// What the update of a row needs beside the row and its gradient; what UpdateKind says of the
/// operator, but for sgd, which updates rows without momentum alone.
struct RowLayout {
  int states = 0;
  bool by_row[most_states] = {};  // of a state: one element for a row, else as many as it has
  bool whole_row = false;         // what an element becomes depends on the others of its row

  /// Several rows may be updated like one that is as long as all of them.
  constexpr bool elementwise() const { return !whole_row && !by_row[0] && !by_row[1]; }
  /// Elements of state k for a row of `columns` elements.
  constexpr std::int64_t state_columns(int k, std::int64_t columns) const {
    return by_row[k] ? 1 : columns;
  }
};

constexpr RowLayout layout_of(RowOptimizer kind) {
  switch (kind) {
    case RowOptimizer::sgd:
      return {};
    case RowOptimizer::adam:
    case RowOptimizer::ftrl:
      return {.states = 2};
    case RowOptimizer::adagrad:
      return {.states = 1};
    case RowOptimizer::rowwise_adagrad:
      return {.states = 1, .by_row = {true, false}, .whole_row = true};
    case RowOptimizer::group_ftrl:
      return {.states = 2, .whole_row = true};
  }
  assert(false && "no such kind");
  return {};
}

struct AdagradSettings {
  double epsilon = 1e-10, weight_decay = 0;
  double lr_decay = 0;  // PyTorch's: lr / (1 + (step - 1) lr_decay)
};

/// All factors of one step of adagrad and rowwise_adagrad.
template <class T>
struct AdagradStep {
  T scale, weight_decay, rate, epsilon;
};

/// step counts from 1; scale multiplies the gradient.
template <class T>
TANDEM_HOST_DEVICE inline AdagradStep<T> adagrad_step(const AdagradSettings& s, double lr,
                                                      std::int64_t step, double scale) {
  const double rate = lr / (1.0 + static_cast<double>(step - 1) * s.lr_decay);
  return {T(scale), T(s.weight_decay), T(rate), T(s.epsilon)};
}

/// What l2 means: the paper's l2 |w|^2 / 2, or l2 |w|^2 of TensorFlow and MindSpore.
enum class FtrlDialect { mcmahan, tensorflow, mindspore };

struct FtrlSettings {
  double l1 = 0, l2 = 0, beta = 0;
  double l2_shrinkage = 0;  // of the gradient: g + 2 l2_shrinkage w, TensorFlow's
  double lr_power = -0.5;   // <= 0
  double l21 = 0;           // of group_ftrl
  FtrlDialect dialect = FtrlDialect::mcmahan;
};

/// All factors of one step of ftrl and group_ftrl.
template <class T>
struct FtrlStep {
  T scale, l1, shrinkage, inverse_lr;
  T l2_term;  // beta / lr + l2 or 2 l2
  T power;    // -lr_power
  T l21;
  bool root;  // power is 0.5
};

/// scale multiplies the gradient; lr > 0.
template <class T>
TANDEM_HOST_DEVICE inline FtrlStep<T> ftrl_step(const FtrlSettings& s, double lr, double scale) {
  const double l2 = s.dialect == FtrlDialect::mcmahan ? s.l2 : 2.0 * s.l2;
  FtrlStep<T> f{};
  f.scale = T(scale);
  f.l1 = T(s.l1);
  f.shrinkage = T(2.0 * s.l2_shrinkage);
  f.inverse_lr = T(1.0 / lr);
  f.l2_term = T(s.beta / lr + l2);
  f.power = T(-s.lr_power);
  f.l21 = T(s.l21);
  f.root = s.lr_power == -0.5;
  return f;
}

namespace row_formulas {

TANDEM_HOST_DEVICE inline float sqrt_of(float x) { return std::sqrt(x); }
TANDEM_HOST_DEVICE inline double sqrt_of(double x) { return std::sqrt(x); }
TANDEM_HOST_DEVICE inline float abs_of(float x) { return std::fabs(x); }
TANDEM_HOST_DEVICE inline double abs_of(double x) { return std::fabs(x); }
TANDEM_HOST_DEVICE inline float power_of(float x, float power) { return std::pow(x, power); }
TANDEM_HOST_DEVICE inline double power_of(double x, double power) { return std::pow(x, power); }

#define TANDEM_FORMULA TANDEM_HOST_DEVICE inline
#include "kernels/shared/row_formulas.inl"
#undef TANDEM_FORMULA

}  // namespace row_formulas

}  // namespace tandem
