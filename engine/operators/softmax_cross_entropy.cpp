// loss = w * (lse - (1 - s) * logit[label] - s * mean(logits)), lse = log(sum(exp(logits))), over
// axis 1, with label smoothing s and label weight w. dlogit[c] = dloss * w * (softmax[c] - (1 - s)
// * [c = label] - s / C). SoftmaxCrossEntropyWithGrad makes losses and dlogits at once, from a
// dloss that is known before them.
#include "engine/graph/builder.h"
#include "engine/operators/labels.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_softmax_cross_entropy(const NodeView& view) {
  require_float(view, 0);
  const TensorType& logits = view.input(0);
  const Shape shape = require_labels(view, logits, 1, 2);
  require_between(view, "label_smoothing", 0.0, 1.0);
  return {{logits.dtype, shape}, {statistics_type(logits.dtype), shape}};
}

Gradients softmax_cross_entropy_gradient(GradientContext& c) {
  Gradients dx(c.node.inputs.size());
  if (!c.dy[0] || !c.wanted[0]) return dx;
  const ValueId weights = c.node.inputs.size() > 2 ? c.x(2) : ValueId{};
  dx[0] = c.g.add_node("SoftmaxCrossEntropyGrad", {c.dy[0], c.x(0), c.x(1), weights, c.y(1)},
                       {{"label_smoothing", c.node.attributes.number("label_smoothing")}});
  return dx;
}

std::vector<TensorType> infer_softmax_cross_entropy_grad(const NodeView& view) {
  require_float(view, 1);
  const TensorType& logits = view.input(1);
  const Shape shape = require_labels(view, logits, 2, 3);
  require_type(view, 0, {logits.dtype, shape});
  require_type(view, 4, {statistics_type(logits.dtype), shape});
  require_between(view, "label_smoothing", 0.0, 1.0);
  return {logits};
}

std::vector<TensorType> infer_with_grad(const NodeView& view) {
  require_float(view, 1);
  const TensorType& logits = view.input(1);
  const Shape shape = require_labels(view, logits, 2, 3);
  require_type(view, 0, {logits.dtype, shape});
  require_between(view, "label_smoothing", 0.0, 1.0);
  return {{logits.dtype, shape}, {statistics_type(logits.dtype), shape}, logits};
}

}  // namespace

Operator softmax_cross_entropy() {
  return {.name = "SoftmaxCrossEntropy",
          .role = Role::class_loss,
          .inputs = {{"logits"}, {"labels"}, {.name = "label_weights", .optional = true}},
          .outputs = {{"losses"}, {"log_sum_exp"}},
          .attributes = {{"label_smoothing", 0.0}},
          .infer = infer_softmax_cross_entropy,
          .gradient = softmax_cross_entropy_gradient,
          .cost = cost_by_elements<5, 0>,
          .precision = Precision::float32,
          .engine_only = true};
}

Operator softmax_cross_entropy_grad() {
  return {.name = "SoftmaxCrossEntropyGrad",
          .inputs = {{"dlosses"},
                     {"logits"},
                     {"labels"},
                     {.name = "label_weights", .optional = true},
                     {"log_sum_exp"}},
          .outputs = {{"dlogits"}},
          .attributes = {{"label_smoothing", 0.0}},
          .infer = infer_softmax_cross_entropy_grad,
          .not_differentiable = "second derivatives of SoftmaxCrossEntropy are not offered",
          .cost = cost_by_elements<5, 1>,
          .precision = Precision::float32,
          .engine_only = true};
}

Operator softmax_cross_entropy_with_grad() {
  return {
      .name = "SoftmaxCrossEntropyWithGrad",
      .inputs = {{"dlosses"}, {"logits"}, {"labels"}, {.name = "label_weights", .optional = true}},
      .outputs = {{"losses"}, {"log_sum_exp"}, {"dlogits"}},
      .attributes = {{"label_smoothing", 0.0}},
      .infer = infer_with_grad,
      .not_differentiable = "made by lowering, after the gradient",
      .cost = cost_by_elements<10, 1>,
      .precision = Precision::float32,
      .engine_only = true};
}

}  // namespace tandem::operators
