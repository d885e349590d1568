// Accuracy of the scalar functions' steps, by vectors or element by element: their distance from
// the standard library's results in double, in units of float32's last place.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "kernels/cpu/pointwise/vector_functions.h"
#include "kernels/reference/scalar_apply.h"
#include "tests/harness/instruction_sets.h"

#include "tests/harness/scalar_examples.h"
#include "tests/kernels/pointwise_check.h"

namespace tandem::testing {
namespace {

constexpr double any = std::numeric_limits<double>::infinity();

struct Bound {
  double units;
  const char* reason;
};

// All other functions are within 2 units.
const std::map<std::string, Bound>& exceptions() {
  static const std::map<std::string, Bound> bounds{
      {"Erf", {8, "a ratio of two polynomials, each rounded"}},
      {"Sigmoid", {3, "a quotient of a sum of an exponential"}},
      {"Softplus", {3, "a product and a quotient behind two approximations"}},
      {"Gelu", {any, "1 + erf cancels below -1, in its definition, too"}},
      {"HardSigmoid", {any, "alpha x + beta cancels where it is near 0"}},
  };
  return bounds;
}

TileOp step_of(const ScalarRow& row) {
  const auto first = static_cast<int>(scalar_rows()[0].function);
  const auto step = static_cast<int>(row.function) - first;
  return static_cast<TileOp>(static_cast<int>(TileOp::neg) + step);
}

double units_between(double got, double exact) {
  if (std::isnan(exact) && std::isnan(got)) return 0;
  if (static_cast<float>(got) == static_cast<float>(exact)) return 0;
  const float near = std::fabs(static_cast<float>(exact));
  const double unit = std::nextafter(near, std::numeric_limits<float>::infinity()) - near;
  return std::fabs(got - exact) / unit;
}

TEST(ScalarAccuracy, IsTwoUnitsOrHasAReason) {
  constexpr std::int64_t n = 100000;
  const OperatorSet operators = all_operators();
  for (const ScalarRow& row : scalar_rows()) {
    const ScalarKind kind = row.kind();
    if (kind.operands != 1 || kind.predicate || !takes_floats(row)) continue;
    const auto bound = exceptions().find(row.name);
    const double allowed = bound == exceptions().end() ? 2 : bound->second.units;
    const double low = std::max(row.options.domain.low, -20.0);
    const double high = std::min(row.options.domain.high, 20.0);
    double worst = 0, worst_at = 0;
    for (const Attributes& attributes : example_attributes(row)) {
      Node node;
      node.op = operators.find(row.name);
      node.attributes = attributes;
      const scalar::Settings settings = scalar::settings_of(node);
      for (const auto& [from, to] :
           {std::pair(low, high), std::pair(std::max(low, -1e-3), std::max(low, -1e-3) + 2e-3)}) {
        const HostTensor x = random_tensor({n}, 5, from, to);
        HostTensor y(x.type());
        for (const Isa isa : instruction_sets()) {
          vector_functions(isa).tile[static_cast<std::size_t>(step_of(row))](
              {x.as<float>().data(), nullptr, nullptr, y.as<float>().data(), n,
               static_cast<float>(settings.first), static_cast<float>(settings.second)});
          // Attributes rounded like the step's.
          const scalar::Settings rounded{static_cast<float>(settings.first),
                                         static_cast<float>(settings.second)};
          for (std::int64_t i = 0; i < n; ++i) {
            const double exact = scalar::apply<double>(row.function, rounded, x.number(i));
            const double units = units_between(y.number(i), exact);
            if (units > worst) worst_at = x.number(i);
            worst = std::max(worst, units);
          }
        }
      }
    }
    EXPECT_LE(worst, allowed) << row.name << " at " << worst_at;
    if (bound != exceptions().end()) {
      EXPECT_GT(worst, 2) << row.name << " needs no exception";
    }
  }
}

}  // namespace
}  // namespace tandem::testing
