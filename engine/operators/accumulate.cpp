// new_sum = sum + grad, or grad where `first` is 1: the gradient of several micro-batches, in
// place.
#include "engine/operators/operator.h"
#include "engine/operators/update.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_accumulate(const NodeView& view) {
  require_float(view, 0);
  require_float(view, 1);
  require_shape(view, 1, view.input(0).shape);
  require_flag(view, "first");
  return {view.input(0)};
}

}  // namespace

Operator accumulate() {
  return {.name = "Accumulate",
          .inputs = {{"sum"}, {"grad"}},
          .outputs = {{"new_sum"}},
          .attributes = {{"first", std::int64_t{0}}},
          .infer = infer_accumulate,
          .not_differentiable = not_differentiable_update,
          .aliases = {{.output = 0, .input = 0}},
          .elementwise_ranges = true,
          .engine_only = true};
}

}  // namespace tandem::operators
