#include "kernels/cpu/rows/row_rule.h"

#include <cstring>

#include "engine/optimizers/settings.h"

namespace tandem {
namespace {

template <class R>
RowFactors factors_of(const R& rule) {
  RowFactors made;
  made.rule = rule_index<R>;
  made.layout = {R::set, R::set & row_states<typename R::Kind>, R::whole_row};
  made.step = [rule, layout = made.layout](double lr, std::int64_t number, double scale) {
    RowStep step{.rule = rule_index<R>, .layout = layout, .factors = {}};
    const typename R::Step factors = rule.step(lr, number, scale);
    std::memcpy(step.factors, &factors, sizeof factors);
    return step;
  };
  made.is_no_step = [](double lr) { return R::Kind::is_no_step(lr); };
  if constexpr (R::whole_tensor) {
    made.terms = R::Kind::terms;
    made.factor = [settings = rule.settings](double lr, const TensorSums& sums) {
      return R::Kind::factor(settings, lr, sums);
    };
  }
  return made;
}

}  // namespace

RowFactors row_factors(std::string_view op, const Attributes& settings) {
  return with_rule<float>(op, settings, [](const auto& rule) { return factors_of(rule); });
}

}  // namespace tandem
