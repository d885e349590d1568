// bucketize(1, 10): how many of the bounds are <= x, int64.
#include <fmt/format.h>

#include <algorithm>

#include "engine/data/functions/field_function.h"

namespace tandem::functions {
namespace {

struct Bucketize final : NumberFunction {
  std::vector<double> bounds;  // rising

  explicit Bucketize(Call& call) {
    call.count(1, 10'000, "bucketize(1, 10, 100)");
    bounds = call.numbers();
    for (std::size_t i = 1; i < bounds.size(); ++i) {
      if (!(bounds[i - 1] < bounds[i])) throw std::invalid_argument("the bounds must rise");
    }
  }

  DType result() const override { return DType::int64; }
  double of(double x) const override {
    return static_cast<double>(std::upper_bound(bounds.begin(), bounds.end(), x) - bounds.begin());
  }
  std::string decides_ids() const override {
    return fmt::format("bucketize({})", fmt::join(bounds, ", "));
  }
};

}  // namespace

FieldFunctionKind bucketize() {
  return {.name = "bucketize",
          .form = "bucketize(1, 10, …)",
          .read = read_call<Bucketize>,
          .gives_ids = true};
}

}  // namespace tandem::functions
