#include "engine/optimizers/schedule_free.h"

#include <cmath>

#include "engine/optimizers/composed.h"

namespace tandem {
namespace {

class ScheduleFreeStep {
 public:
  ScheduleFreeStep(const ScheduleFreeSettings& s, ComposedStep& step)
      : s_(s), step_(step), g_(step.g), t_(g_.cast(step.number, DType::float32)) {}

  ComposedResult run() {
    const ValueId lead = step_.states[0], v = step_.states[1];
    const ValueId g = step_.gradient, y = step_.master;
    const ValueId square =
        g_.add(g_.mul(v, number(s_.beta2)), g_.mul(g_.mul(g, number(1 - s_.beta2)), g));
    const ValueId root = g_.mul(g_.add_node("Sqrt", {square}), root_factor());
    ValueId d = g_.div(g, g_.add(root, number(s_.epsilon)));
    if (s_.weight_decay != 0) d = g_.add(d, g_.mul(y, number(s_.weight_decay)));

    const ValueId c = share(), rest = g_.sub(number(1), c), lr = step_.lr;
    const ValueId pull = g_.mul(c, number(s_.beta1 / (1 - s_.beta1)));
    const ValueId rate = g_.mul(lr, g_.sub(number(1), g_.mul(rest, number(s_.beta1))));
    const ValueId new_y = g_.sub(g_.add(y, g_.mul(lead, pull)), g_.mul(d, rate));
    const ValueId lead_rate = g_.mul(g_.mul(lr, number(1 - s_.beta1)), rest);
    const ValueId new_lead = g_.sub(g_.mul(lead, rest), g_.mul(d, lead_rate));
    return {step_.unless_skipped(y, new_y),
            {step_.unless_skipped(lead, new_lead), step_.unless_skipped(v, square),
             step_.unless_skipped(step_.states[2], steps_),
             step_.unless_skipped(step_.states[3], largest_)}};
  }

 private:
  ValueId number(double x) { return step_.number_of(x); }
  ValueId power(ValueId x, double exponent) {
    if (exponent == 0) return number(1);
    if (exponent == 1) return x;
    if (exponent == 2) return g_.mul(x, x);
    return g_.add_node("Exp", {g_.mul(g_.add_node("Log", {x}), number(exponent))});
  }
  /// 1 / sqrt(1 - beta2^t): of the first steps the difference needs all of its digits.
  ValueId root_factor() {
    if (s_.beta2 == 0) return number(1);
    const ValueId less = g_.add_node("Expm1", {g_.mul(t_, number(std::log(s_.beta2)))});
    return g_.div(number(1), g_.add_node("Sqrt", {g_.neg(less)}));
  }
  /// c: the weight of this step in the mean. The sum of weights in units of the last one grows by 1
  /// a step, after it was converted to the new unit. A rate that was always 0 counts nothing.
  ValueId share() {
    largest_ = g_.add_node("Max", {step_.states[3], step_.lr});
    const bool by_rate = s_.weight_lr_power != 0;
    const ValueId none = g_.add_node("LessOrEqual", {largest_, number(0)});
    ValueId unit = number(1);
    if (by_rate) {
      const ValueId divisor = g_.add_node("Where", {none, number(1), largest_});
      unit = power(g_.div(step_.states[3], divisor), s_.weight_lr_power);
    }
    if (s_.r != 0) unit = g_.mul(unit, power(g_.div(g_.sub(t_, number(1)), t_), s_.r));
    const ValueId steps = g_.add(g_.mul(step_.states[2], unit), number(1));
    const auto unless_none = [&](ValueId x) {
      return by_rate ? g_.add_node("Where", {none, number(0), x}) : x;
    };
    steps_ = unless_none(steps);
    return unless_none(g_.div(number(1), steps));
  }

  const ScheduleFreeSettings& s_;
  ComposedStep& step_;
  GraphBuilder& g_;
  ValueId t_, steps_, largest_;
};

}  // namespace

ComposedResult ScheduleFree::compose(const Settings& settings, ComposedStep& step) {
  return ScheduleFreeStep(settings, step).run();
}

}  // namespace tandem
