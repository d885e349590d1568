// loss = -w * log_probs[label] along axis 1; dlog_probs[c] = -w * dloss where c = label, 0
// elsewhere.
#include "engine/graph/builder.h"
#include "engine/operators/labels.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_negative_log_likelihood(const NodeView& view) {
  require_float(view, 0);
  const TensorType& log_probs = view.input(0);
  return {{log_probs.dtype, require_labels(view, log_probs, 1, 2)}};
}

Gradients negative_log_likelihood_gradient(GradientContext& c) {
  Gradients dx(c.node.inputs.size());
  if (!c.dy[0] || !c.wanted[0]) return dx;
  std::vector<ValueId> inputs{c.dy[0], c.x(1)};
  if (c.node.inputs.size() > 2) inputs.push_back(c.x(2));
  const Shape shape = c.g.shape(c.x(0));
  dx[0] = c.g.add_node("NegativeLogLikelihoodGrad", std::move(inputs), {{"shape", shape}});
  return dx;
}

// One element of log_probs is read for each label.
Cost negative_log_likelihood_cost(const NodeView& view) {
  const double labels = element_number(view.input(1));
  return {2 * labels, operand_bytes(view) - static_cast<double>(view.input(0).bytes()) +
                          labels * static_cast<double>(size_of(view.input(0).dtype))};
}

std::vector<TensorType> infer_negative_log_likelihood_grad(const NodeView& view) {
  require_float(view, 0);
  const TensorType log_probs{view.input(0).dtype, checked_shape(view, "shape")};
  require_shape(view, 0, require_labels(view, log_probs, 1, 2));
  return {log_probs};
}

}  // namespace

Operator negative_log_likelihood() {
  return {.name = "NegativeLogLikelihood",
          .role = Role::class_loss,
          .inputs = {{"log_probs"}, {"labels"}, {.name = "label_weights", .optional = true}},
          .outputs = {{"losses"}},
          .infer = infer_negative_log_likelihood,
          .gradient = negative_log_likelihood_gradient,
          .cost = negative_log_likelihood_cost,
          .precision = Precision::float32,
          .engine_only = true};
}

Operator negative_log_likelihood_grad() {
  return {.name = "NegativeLogLikelihoodGrad",
          .inputs = {{"dlosses"}, {"labels"}, {.name = "label_weights", .optional = true}},
          .outputs = {{"dlog_probs"}},
          .attributes = {{"shape", Ints{}, true}},
          .infer = infer_negative_log_likelihood_grad,
          .not_differentiable = "second derivatives of NegativeLogLikelihood are not offered",
          .cost = cost_by_elements<2, 0>,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
