// What a step of an update does to elements or rows: the rule that a node names, with one step's
// factors.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "engine/device/kernel.h"
#include "engine/operators/update_kind.h"
#include "kernels/cpu/rows/rows.h"

namespace tandem {

/// A rule and the settings of a node.
struct RowFactors {
  int rule = 0;
  RowLayout layout;
  /// The factors of step `number`, from 1, as RuleLoops take them.
  std::function<RowStep(double lr, std::int64_t number, double scale)> step;
  bool (*is_no_step)(double lr) = nullptr;
  /// For rules of whole tensors: how many sums of squares they take, and what the step gets.
  int terms = 0;
  std::function<double(double lr, const TensorSums& sums)> factor;
};
/// `op` is that of an update; all of its attributes are there. Throws where no rule fits.
RowFactors row_factors(std::string_view op, const Attributes& settings);

/// The rule of an update's node, a GroupedUpdate or a RowsUpdate.
class RowRule {
 public:
  explicit RowRule(const KernelRequest& r)
      : factors_(row_factors(update_kind(*r.node).rule, r.attributes())) {}

  int rule() const { return factors_.rule; }
  const RowLayout& layout() const { return factors_.layout; }
  int terms() const { return factors_.terms; }
  double factor(double lr, const TensorSums& sums) const { return factors_.factor(lr, sums); }

  /// `scalars` are lr, step, scale, skip; nothing where the step is skipped.
  std::optional<RowStep> step(const void* const* scalars) const {
    if (*static_cast<const bool*>(scalars[3])) return std::nullopt;
    const double lr = static_cast<double>(*static_cast<const float*>(scalars[0]));
    if (factors_.is_no_step(lr)) return std::nullopt;
    return factors_.step(lr, *static_cast<const std::int64_t*>(scalars[1]),
                         static_cast<double>(*static_cast<const float*>(scalars[2])));
  }

 private:
  RowFactors factors_;
};

}  // namespace tandem
