// The kinds of updates as kernels on the card take them: settings that travel with the launch, the
// factors of a step made from scalars in the card's memory, and what becomes of an element or of a
// row. The formulas are those of kernels/shared.
#pragma once

#include <cstdint>
#include <utility>

#include "engine/runtime/kernel.h"
#include "kernels/cuda/block/block.h"
#include "kernels/shared/update_rules.h"

namespace tandem::cuda {

/// Kinds of single elements: element(step, master, grad, states) returns the new master.
struct SgdRule {
  using Step = SgdStep<float>;
  static constexpr RowOptimizer kind = RowOptimizer::sgd;
  static constexpr int states = 0;
  static constexpr bool whole_row = false;
  SgdSettings settings;

  TANDEM_HOST_DEVICE Step step(double lr, std::int64_t number, double scale) const {
    return sgd_step<float>(settings, lr, number, scale);
  }
  TANDEM_HOST_DEVICE static float element(const Step& step, float master, float grad, float*) {
    return sgd_element(step, master, grad);
  }
};

struct MomentumRule {
  using Step = SgdStep<float>;
  static constexpr RowOptimizer kind = RowOptimizer::sgd;
  static constexpr int states = 1;
  static constexpr bool whole_row = false;
  SgdSettings settings;

  TANDEM_HOST_DEVICE Step step(double lr, std::int64_t number, double scale) const {
    return sgd_step<float>(settings, lr, number, scale);
  }
  TANDEM_HOST_DEVICE static float element(const Step& step, float master, float grad,
                                          float* states) {
    return sgd_element(step, master, grad, states[0]);
  }
};

struct AdamRule {
  using Step = AdamStep<float>;
  static constexpr RowOptimizer kind = RowOptimizer::adam;
  static constexpr int states = 2;
  static constexpr bool whole_row = false;
  AdamSettings settings;

  TANDEM_HOST_DEVICE Step step(double lr, std::int64_t number, double scale) const {
    return adam_step<float>(settings, lr, number, scale);
  }
  TANDEM_HOST_DEVICE static float element(const Step& step, float master, float grad,
                                          float* states) {
    return adam_element(step, master, grad, states[0], states[1]);
  }
};

struct AdagradRule {
  using Step = AdagradStep<float>;
  static constexpr RowOptimizer kind = RowOptimizer::adagrad;
  static constexpr int states = 1;
  static constexpr bool whole_row = false;
  AdagradSettings settings;

  TANDEM_HOST_DEVICE Step step(double lr, std::int64_t number, double scale) const {
    return adagrad_step<float>(settings, lr, number, scale);
  }
  TANDEM_HOST_DEVICE static float element(const Step& step, float master, float grad,
                                          float* states) {
    return row_formulas::row_adagrad(step, master, grad, states[0]);
  }
};

struct FtrlRule {
  using Step = FtrlStep<float>;
  static constexpr RowOptimizer kind = RowOptimizer::ftrl;
  static constexpr int states = 2;
  static constexpr bool whole_row = false;
  FtrlSettings settings;

  TANDEM_HOST_DEVICE Step step(double lr, std::int64_t, double scale) const {
    return ftrl_step<float>(settings, lr, scale);
  }
  TANDEM_HOST_DEVICE static float element(const Step& step, float master, float grad,
                                          float* states) {
    return row_formulas::row_ftrl(step, master, grad, states[0], states[1]);
  }
};

/// Kinds of whole rows, in two walks over a row. `first` changes the states that have as many
/// elements as the row and returns what is summed over the row; `factor` gets that sum and the
/// state that has one element for the row; `last` returns the new master.
struct RowwiseAdagradRule {
  using Step = AdagradStep<float>;
  static constexpr RowOptimizer kind = RowOptimizer::rowwise_adagrad;
  static constexpr int states = 0;  // as long as the row
  static constexpr bool whole_row = true, has_row_state = true;
  AdagradSettings settings;

  TANDEM_HOST_DEVICE Step step(double lr, std::int64_t number, double scale) const {
    return adagrad_step<float>(settings, lr, number, scale);
  }
  TANDEM_HOST_DEVICE static float first(const Step& step, float master, float grad, float*) {
    const float g = row_formulas::rowwise_gradient(step, master, grad);
    return g * g;
  }
  TANDEM_HOST_DEVICE static float factor(const Step& step, float sum, float columns,
                                         float& row_state) {
    return row_formulas::rowwise_factor(step, sum, columns, row_state);
  }
  TANDEM_HOST_DEVICE static float last(const Step& step, float master, float grad, const float*,
                                       float factor) {
    return master - factor * row_formulas::rowwise_gradient(step, master, grad);
  }
};

struct GroupFtrlRule {
  using Step = FtrlStep<float>;
  static constexpr RowOptimizer kind = RowOptimizer::group_ftrl;
  static constexpr int states = 2;
  static constexpr bool whole_row = true, has_row_state = false;
  FtrlSettings settings;

  TANDEM_HOST_DEVICE Step step(double lr, std::int64_t, double scale) const {
    return ftrl_step<float>(settings, lr, scale);
  }
  TANDEM_HOST_DEVICE static float first(const Step& step, float master, float grad, float* states) {
    row_formulas::ftrl_states(step, master, grad, states[0], states[1]);
    const float x = row_formulas::ftrl_threshold(step, states[1]);
    return x * x;
  }
  TANDEM_HOST_DEVICE static float factor(const Step& step, float sum, float columns, float&) {
    return row_formulas::group_factor(step.l21, sum, columns);
  }
  TANDEM_HOST_DEVICE static float last(const Step& step, float, float, const float* states,
                                       float factor) {
    const float x = row_formulas::ftrl_threshold(step, states[1]);
    const float power = row_formulas::ftrl_power(step, states[0]);
    return row_formulas::ftrl_quotient(step, x * factor, power);
  }
};

/// f(rule) with the settings of a node. For all kinds; `op` is UpdateKind::op.
template <class F>
auto with_rule(std::string_view op, const Attributes& settings, F f) {
  switch (row_optimizer(op)) {
    case RowOptimizer::sgd:
      if (settings.number("momentum") == 0) return f(SgdRule{sgd_settings(settings)});
      return f(MomentumRule{sgd_settings(settings)});
    case RowOptimizer::adam:
      return f(AdamRule{adam_settings(settings)});
    case RowOptimizer::adagrad:
      return f(AdagradRule{adagrad_settings(settings)});
    case RowOptimizer::ftrl:
      return f(FtrlRule{ftrl_settings(settings)});
    case RowOptimizer::rowwise_adagrad:
      return f(RowwiseAdagradRule{adagrad_settings(settings)});
    case RowOptimizer::group_ftrl:
      return f(GroupFtrlRule{ftrl_settings(settings)});
  }
  fail_update(op, "has no rule on a card");
}

/// The inputs lr, step, scale, skip of an update, in the card's memory.
struct StepScalars {
  const float* lr = nullptr;
  const std::int64_t* step = nullptr;
  const float* scale = nullptr;
  const bool* skip = nullptr;

  StepScalars() = default;
  StepScalars(const KernelArguments& a, std::size_t first)
      : lr(static_cast<const float*>(a.inputs[first])),
        step(static_cast<const std::int64_t*>(a.inputs[first + 1])),
        scale(static_cast<const float*>(a.inputs[first + 2])),
        skip(static_cast<const bool*>(a.inputs[first + 3])) {}
};

/// The factors of a step; they hold nothing where the step is skipped.
template <class Rule>
struct StepFactors {
  typename Rule::Step step;
  bool skipped;
};

/// One thread computes them, in double, for its block; at the start of its shared memory. Ends with
/// a barrier.
template <class Rule, class Block>
TANDEM_HOST_DEVICE StepFactors<Rule> step_factors(const Block& block, const Rule& rule,
                                                  const StepScalars& scalars) {
  auto* const factors = block.template shared<StepFactors<Rule>>();
  block.one([&] {
    const auto lr = static_cast<double>(*scalars.lr);
    factors->skipped = *scalars.skip;
    if constexpr (requires { Rule::kind; })
      factors->skipped = factors->skipped || is_no_step(Rule::kind, lr);
    if (!factors->skipped) {
      factors->step = rule.step(lr, *scalars.step, static_cast<double>(*scalars.scale));
    }
  });
  block.sync();
  return *factors;
}

}  // namespace tandem::cuda
