// weight[i] = class_weights[label[i]], or 1 without class weights; 0 where label[i] is to be
// ignored.
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_label_weights(const NodeView& view) {
  require_index(view, 0);
  require_flag(view, "ignore");
  const std::int64_t classes = view.attributes().integer("classes");
  if (classes < 1) view.fail("classes is out of range", "1 or more", std::to_string(classes));
  DType dtype = DType::float32;
  if (view.has_input(1)) {
    require_float(view, 1);
    require_shape(view, 1, {classes});
    dtype = statistics_type(view.input(1).dtype);
  }
  return {{dtype, view.input(0).shape}};
}

}  // namespace

Operator label_weights() {
  return {.name = "LabelWeights",
          .inputs = {{"labels"}, {.name = "class_weights", .optional = true}},
          .outputs = {{"weights"}},
          .attributes = {{"ignore_index", std::int64_t{0}, true},
                         {"ignore", std::int64_t{0}},
                         {"classes", std::int64_t{0}, true}},
          .infer = infer_label_weights,
          .not_differentiable = "labels and class weights are data, not parameters",
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
