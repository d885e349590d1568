// What the reference kernels of updates have in common: the step's scalars.
#pragma once

#include "engine/operators/update_kind.h"
#include "engine/optimizers/settings.h"
#include "kernels/reference/network_support.h"

namespace tandem::reference {

/// The inputs lr, step, scale, skip, from `first` on.
struct Scalars {
  Reader lr, step, scale, skip;
  std::size_t first;

  Scalars(const KernelRequest& r, std::size_t first_input)
      : lr(r.inputs[first_input]),
        step(r.inputs[first_input + 1]),
        scale(r.inputs[first_input + 2]),
        skip(r.inputs[first_input + 3]),
        first(first_input) {}

  double rate(const KernelArguments& a) const { return lr.number(a.inputs[first], 0); }
  std::int64_t number(const KernelArguments& a) const {
    return step.integer(a.inputs[first + 1], 0);
  }
  template <class Rule>
  bool skipped(const KernelArguments& a, const Rule&) const {
    return skip.integer(a.inputs[first + 3], 0) != 0 || Rule::Kind::is_no_step(rate(a));
  }
  /// The factors of this step.
  template <class Rule>
  auto step_of(const KernelArguments& a, const Rule& rule) const {
    return rule.step(rate(a), number(a), scale.number(a.inputs[first + 2], 0));
  }
};

}  // namespace tandem::reference
