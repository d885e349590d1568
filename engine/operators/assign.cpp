// A state takes a value of its type: what a model's own training algorithm gives it for the next
// step.
#include "engine/operators/operator.h"
#include "engine/operators/update.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_assign(const NodeView& view) {
  if (view.input(0) != view.input(1)) {
    view.fail("a state takes a value of another type", to_string(view.input(0)),
              to_string(view.input(1)));
  }
  return {view.input(0)};
}

}  // namespace

Operator assign() {
  return {.name = "Assign",
          .inputs = {{"state"}, {"value"}},
          .outputs = {{"new_state"}},
          .infer = infer_assign,
          .not_differentiable = not_differentiable_update,
          .aliases = {{.output = 0, .input = 0}},
          .engine_only = true};
}

}  // namespace tandem::operators
