// log1p: log(1 + max(x, 0)), float32.
#include <algorithm>
#include <cmath>

#include "engine/data/functions/field_function.h"

namespace tandem::functions {
namespace {

struct Log1p final : NumberFunction {
  double of(double x) const override { return std::log1p(std::max(x, 0.0)); }
  std::string decides_ids() const override { return "log1p"; }
};

}  // namespace

FieldFunctionKind log1p() { return {.name = "log1p", .form = "log1p", .read = read_call<Log1p>}; }

}  // namespace tandem::functions
