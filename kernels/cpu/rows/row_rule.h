// What a step of an update does to elements or rows: the rule that a node names, with the factors
// of one step.
#pragma once

#include <functional>
#include <optional>

#include "engine/operators/update_kind.h"
#include "engine/runtime/kernel.h"
#include "kernels/cpu/rows/rows.h"
#include "kernels/shared/update_rules.h"

namespace tandem {

inline void set_factors(RowStep& step, const SgdStep<float>& factors) { step.sgd = factors; }
inline void set_factors(RowStep& step, const AdamStep<float>& factors) { step.adam = factors; }
inline void set_factors(RowStep& step, const AdagradStep<float>& factors) {
  step.adagrad = factors;
}
inline void set_factors(RowStep& step, const FtrlStep<float>& factors) { step.ftrl = factors; }

/// Of a node of an update, of GroupedUpdate or RowsUpdate whose kind is a RowOptimizer.
class RowRule {
 public:
  explicit RowRule(const KernelRequest& r)
      : factors_(with_rule<float>(update_kind(*r.node).op, r.attributes(),
                                  [](auto rule) {
                                    return Factors(
                                        [rule](double lr, std::int64_t number, double scale) {
                                          RowStep step{.kind = decltype(rule)::kind};
                                          set_factors(step, rule.step(lr, number, scale));
                                          return step;
                                        });
                                  })),
        kind_(row_optimizer(update_kind(*r.node).op)) {}

  /// `scalars` are lr, step, scale, skip; nothing where the step is skipped.
  std::optional<RowStep> step(const void* const* scalars) const {
    if (*static_cast<const bool*>(scalars[3])) return std::nullopt;
    const double lr = static_cast<double>(*static_cast<const float*>(scalars[0]));
    if (is_no_step(kind_, lr)) return std::nullopt;
    return factors_(lr, *static_cast<const std::int64_t*>(scalars[1]),
                    static_cast<double>(*static_cast<const float*>(scalars[2])));
  }

 private:
  using Factors = std::function<RowStep(double lr, std::int64_t number, double scale)>;
  Factors factors_;
  RowOptimizer kind_;
};

}  // namespace tandem
