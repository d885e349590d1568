// The loss of connectionist temporal classification (Graves et al. 2006): -log of the probability
// that frames of classes, after runs of one class became one and blanks were left out, spell the
// labels. dlog_probs[t, c] = -dloss * the probability that frame t is in class c, given the labels.
#include "engine/graph/builder.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

/// Inputs log_probs [N, T, C], labels [N, S], label_lengths [N] and (optional) lengths [N], from
/// `first` on, fit each other. Returns N.
std::int64_t require_sequences(const NodeView& view, std::size_t first) {
  require_float(view, first);
  require_rank(view, first, 3);
  const Shape& log_probs = view.input(first).shape;
  if (log_probs[2] < 1) view.fail("there are no classes", "1 class at least", to_string(log_probs));
  require_rank(view, first + 1, 2);
  require_shape(view, first + 1, {log_probs[0], view.input(first + 1).shape[1]});
  for (std::size_t i = first + 1; i < first + 4; ++i) {
    if (!view.has_input(i)) continue;
    require_index(view, i);
    if (i > first + 1) require_shape(view, i, {log_probs[0]});
  }
  require_flag(view, "zero_infinity");
  const std::int64_t blank = view.attributes().integer("blank");
  if (blank < 0 || blank >= log_probs[2]) {
    view.fail("blank is no class", "0 to " + std::to_string(log_probs[2] - 1),
              std::to_string(blank));
  }
  return log_probs[0];
}

std::vector<TensorType> infer_ctc_loss(const NodeView& view) {
  const std::int64_t samples = require_sequences(view, 0);
  return {{view.input(0).dtype, {samples}}};
}

Gradients ctc_loss_gradient(GradientContext& c) {
  Gradients dx(c.node.inputs.size());
  if (!c.dy[0] || !c.wanted[0]) return dx;
  std::vector<ValueId> inputs{c.dy[0]};
  inputs.insert(inputs.end(), c.node.inputs.begin(), c.node.inputs.end());
  dx[0] = c.g.add_node("CtcLossGrad", std::move(inputs), c.node.attributes);
  return dx;
}

std::vector<TensorType> infer_ctc_loss_grad(const NodeView& view) {
  const std::int64_t samples = require_sequences(view, 1);
  require_type(view, 0, {view.input(1).dtype, {samples}});
  return {view.input(1)};
}

/// Each frame visits two states a label and one more, at about 60 operations for the logarithm of
/// a sum of exponentials.
template <int passes, std::size_t first>
Cost ctc_cost(const NodeView& view) {
  const Shape& log_probs = view.input(first).shape;
  const auto states = static_cast<double>(2 * view.input(first + 1).shape[1] + 1);
  const double frames = static_cast<double>(log_probs[0]) * static_cast<double>(log_probs[1]);
  return {60.0 * passes * frames * states, operand_bytes(view)};
}

std::vector<AttributeSpec> ctc_attributes() {
  return {{"blank", std::int64_t{0}}, {"zero_infinity", std::int64_t{0}}};
}

}  // namespace

Operator ctc_loss() {
  return {.name = "CtcLoss",
          .inputs = {{"log_probs"},
                     {"labels"},
                     {"label_lengths"},
                     {.name = "lengths", .optional = true}},
          .outputs = {{"losses"}},
          .attributes = ctc_attributes(),
          .infer = infer_ctc_loss,
          .gradient = ctc_loss_gradient,
          .cost = ctc_cost<1, 0>,
          .precision = Precision::float32,
          .engine_only = true};
}

Operator ctc_loss_grad() {
  return {.name = "CtcLossGrad",
          .inputs = {{"dlosses"},
                     {"log_probs"},
                     {"labels"},
                     {"label_lengths"},
                     {.name = "lengths", .optional = true}},
          .outputs = {{"dlog_probs"}},
          .attributes = ctc_attributes(),
          .infer = infer_ctc_loss_grad,
          .not_differentiable = "second derivatives of CtcLoss are not offered",
          .cost = ctc_cost<2, 1>,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
