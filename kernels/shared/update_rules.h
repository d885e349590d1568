// Every update kind as a rule: its settings, the factors of a step and what becomes of an element
// or of a row. For kernels that are written once for all kinds, of the reference and of cards; T is
// the type computed in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "engine/graph/error.h"
#include "kernels/shared/host_device.h"
#include "kernels/shared/optimizer.h"
#include "kernels/shared/row_optimizers.h"

namespace tandem {

inline AdagradSettings adagrad_settings(const Attributes& attributes) {
  return {attributes.number("epsilon"), attributes.number("weight_decay"),
          attributes.number("lr_decay")};
}

inline FtrlSettings ftrl_settings(const Attributes& attributes) {
  FtrlSettings s;
  s.l1 = attributes.number("l1");
  s.l2 = attributes.number("l2");
  s.beta = attributes.number("beta");
  s.l2_shrinkage = attributes.number("l2_shrinkage");
  s.lr_power = attributes.number("lr_power");
  s.l21 = attributes.number("l21");
  const std::string& dialect = attributes.text("dialect");
  s.dialect = dialect == "tensorflow"  ? FtrlDialect::tensorflow
              : dialect == "mindspore" ? FtrlDialect::mindspore
                                       : FtrlDialect::mcmahan;
  return s;
}

/// The kinds and their operators, each of engine/operators/update_kind.h once.
struct RowOptimizerOp {
  RowOptimizer kind;
  std::string_view op;
};
inline constexpr RowOptimizerOp row_optimizer_ops[] = {
    {RowOptimizer::sgd, "SgdUpdate"},
    {RowOptimizer::adam, "AdamUpdate"},
    {RowOptimizer::adagrad, "AdagradUpdate"},
    {RowOptimizer::rowwise_adagrad, "RowwiseAdagradUpdate"},
    {RowOptimizer::ftrl, "FtrlUpdate"},
    {RowOptimizer::group_ftrl, "GroupFtrlUpdate"},
};

/// Our own mistake, which must not become the update of another kind.
[[noreturn]] inline void fail_update(std::string_view op, const char* what) {
  Diagnostic d;
  d.message = "internal error: " + std::string(op) + " " + what;
  throw Error(ErrorKind::runtime, std::move(d));
}

/// Of UpdateKind::op. Throws where the table lacks it.
inline RowOptimizer row_optimizer(std::string_view op) {
  for (const RowOptimizerOp& known : row_optimizer_ops) {
    if (known.op == op) return known.kind;
  }
  fail_update(op, "is missing in row_optimizer_ops");
}

/// Whether a step with this learning rate is none: FTRL divides by it, and a schedule may end at 0.
TANDEM_HOST_DEVICE inline bool is_no_step(RowOptimizer kind, double lr) {
  return lr == 0 && (kind == RowOptimizer::ftrl || kind == RowOptimizer::group_ftrl);
}

/// What a rule of a kind has beside its formulas.
template <RowOptimizer of>
struct RuleKind {
  static constexpr RowOptimizer kind = of;
  static constexpr bool whole_row = layout_of(of).whole_row;
  static constexpr bool has_row_state = layout_of(of).by_row[0];
  /// As long as the row.
  static constexpr int states = layout_of(of).states - (has_row_state ? 1 : 0);
};

// Settings of a node, and step(lr, number, scale): the factors of step `number`, from 1.
template <class T>
struct SgdFactors {
  using Step = SgdStep<T>;
  SgdSettings settings;

  explicit SgdFactors(const Attributes& node) : settings(sgd_settings(node)) {}
  TANDEM_HOST_DEVICE Step step(double lr, std::int64_t number, double scale) const {
    return sgd_step<T>(settings, lr, number, scale);
  }
};

template <class T>
struct AdamFactors {
  using Step = AdamStep<T>;
  AdamSettings settings;

  explicit AdamFactors(const Attributes& node) : settings(adam_settings(node)) {}
  TANDEM_HOST_DEVICE Step step(double lr, std::int64_t number, double scale) const {
    return adam_step<T>(settings, lr, number, scale);
  }
};

template <class T>
struct AdagradFactors {
  using Step = AdagradStep<T>;
  AdagradSettings settings;

  explicit AdagradFactors(const Attributes& node) : settings(adagrad_settings(node)) {}
  TANDEM_HOST_DEVICE Step step(double lr, std::int64_t number, double scale) const {
    return adagrad_step<T>(settings, lr, number, scale);
  }
};

template <class T>
struct FtrlFactors {
  using Step = FtrlStep<T>;
  FtrlSettings settings;

  explicit FtrlFactors(const Attributes& node) : settings(ftrl_settings(node)) {}
  TANDEM_HOST_DEVICE Step step(double lr, std::int64_t, double scale) const {
    return ftrl_step<T>(settings, lr, scale);
  }
};

/// Kinds of single elements: element(step, master, grad, states) returns the new master and
/// replaces the states.
template <class T>
struct SgdRule : RuleKind<RowOptimizer::sgd>, SgdFactors<T> {
  using SgdFactors<T>::SgdFactors;

  TANDEM_HOST_DEVICE static T element(const SgdStep<T>& step, T master, T grad, T*) {
    return sgd_element(step, master, grad);
  }
};

template <class T>
struct MomentumRule : RuleKind<RowOptimizer::sgd>, SgdFactors<T> {
  using SgdFactors<T>::SgdFactors;
  static constexpr int states = 1;

  TANDEM_HOST_DEVICE static T element(const SgdStep<T>& step, T master, T grad, T* states) {
    return sgd_element(step, master, grad, states[0]);
  }
};

template <class T>
struct AdamRule : RuleKind<RowOptimizer::adam>, AdamFactors<T> {
  using AdamFactors<T>::AdamFactors;

  TANDEM_HOST_DEVICE static T element(const AdamStep<T>& step, T master, T grad, T* states) {
    return adam_element(step, master, grad, states[0], states[1]);
  }
};

template <class T>
struct AdagradRule : RuleKind<RowOptimizer::adagrad>, AdagradFactors<T> {
  using AdagradFactors<T>::AdagradFactors;

  TANDEM_HOST_DEVICE static T element(const AdagradStep<T>& step, T master, T grad, T* states) {
    return row_formulas::row_adagrad(step, master, grad, states[0]);
  }
};

template <class T>
struct FtrlRule : RuleKind<RowOptimizer::ftrl>, FtrlFactors<T> {
  using FtrlFactors<T>::FtrlFactors;

  TANDEM_HOST_DEVICE static T element(const FtrlStep<T>& step, T master, T grad, T* states) {
    return row_formulas::row_ftrl(step, master, grad, states[0], states[1]);
  }
};

/// Kinds of whole rows, in two walks over a row. `first` changes the states that have as many
/// elements as the row and returns what is summed over the row; `factor` gets that sum and the
/// state that has one element for the row; `last` returns the new master.
template <class T>
struct RowwiseAdagradRule : RuleKind<RowOptimizer::rowwise_adagrad>, AdagradFactors<T> {
  using AdagradFactors<T>::AdagradFactors;

  TANDEM_HOST_DEVICE static T first(const AdagradStep<T>& step, T master, T grad, T*) {
    const T g = row_formulas::rowwise_gradient(step, master, grad);
    return g * g;
  }
  TANDEM_HOST_DEVICE static T factor(const AdagradStep<T>& step, T sum, T columns, T& row_state) {
    return row_formulas::rowwise_factor(step, sum, columns, row_state);
  }
  TANDEM_HOST_DEVICE static T last(const AdagradStep<T>& step, T master, T grad, const T*,
                                   T factor) {
    return master - factor * row_formulas::rowwise_gradient(step, master, grad);
  }
};

template <class T>
struct GroupFtrlRule : RuleKind<RowOptimizer::group_ftrl>, FtrlFactors<T> {
  using FtrlFactors<T>::FtrlFactors;

  TANDEM_HOST_DEVICE static T first(const FtrlStep<T>& step, T master, T grad, T* states) {
    row_formulas::ftrl_states(step, master, grad, states[0], states[1]);
    const T x = row_formulas::ftrl_threshold(step, states[1]);
    return x * x;
  }
  TANDEM_HOST_DEVICE static T factor(const FtrlStep<T>& step, T sum, T columns, T&) {
    return row_formulas::group_factor(step.l21, sum, columns);
  }
  TANDEM_HOST_DEVICE static T last(const FtrlStep<T>& step, T, T, const T* states, T factor) {
    const T x = row_formulas::ftrl_threshold(step, states[1]);
    const T power = row_formulas::ftrl_power(step, states[0]);
    return row_formulas::ftrl_quotient(step, x * factor, power);
  }
};

/// f(rule) with the settings of a node. For all kinds; `op` is UpdateKind::op.
template <class T, class F>
auto with_rule(std::string_view op, const Attributes& node, F f) {
  switch (row_optimizer(op)) {
    case RowOptimizer::sgd:
      if (node.number("momentum") == 0) return f(SgdRule<T>(node));
      return f(MomentumRule<T>(node));
    case RowOptimizer::adam:
      return f(AdamRule<T>(node));
    case RowOptimizer::adagrad:
      return f(AdagradRule<T>(node));
    case RowOptimizer::rowwise_adagrad:
      return f(RowwiseAdagradRule<T>(node));
    case RowOptimizer::ftrl:
      return f(FtrlRule<T>(node));
    case RowOptimizer::group_ftrl:
      return f(GroupFtrlRule<T>(node));
  }
  fail_update(op, "has no rule");
}

}  // namespace tandem
