// What the reference kernels of updates share: the step's scalars.
#pragma once

#include <optional>

#include "engine/operators/update_kind.h"
#include "kernels/reference/network_support.h"
#include "kernels/shared/update_rules.h"

namespace tandem::reference {

/// Kinds of whole tensors are no row optimizers.
inline std::optional<RowOptimizer> row_optimizer_of(const UpdateKind& kind) {
  if (kind.whole_tensor) return std::nullopt;
  return row_optimizer(kind.op);
}

/// The inputs lr, step, scale, skip, from `first` on.
struct Scalars {
  Reader lr, step, scale, skip;
  std::size_t first;
  std::optional<RowOptimizer> kind;  // none: of whole tensors

  Scalars(const KernelRequest& r, std::size_t first_input)
      : lr(r.inputs[first_input]),
        step(r.inputs[first_input + 1]),
        scale(r.inputs[first_input + 2]),
        skip(r.inputs[first_input + 3]),
        first(first_input),
        kind(row_optimizer_of(update_kind(*r.node))) {}

  bool skipped(const KernelArguments& a) const {
    return skip.integer(a.inputs[first + 3], 0) != 0 ||
           (kind && is_no_step(*kind, lr.number(a.inputs[first], 0)));
  }
  /// f(lr, step, scale)
  template <class F>
  auto with(const KernelArguments& a, F f) const {
    return f(lr.number(a.inputs[first], 0), step.integer(a.inputs[first + 1], 0),
             scale.number(a.inputs[first + 2], 0));
  }
  /// The factors of this step.
  template <class Rule>
  auto step_of(const KernelArguments& a, const Rule& rule) const {
    return with(a, [&](double rate, std::int64_t number, double factor) {
      return rule.step(rate, number, factor);
    });
  }
};

}  // namespace tandem::reference
