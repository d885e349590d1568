// y = (x - m) * r * scale + bias per channel, with the batch's mean m and r = 1 / sqrt(v +
// epsilon), v its population variance; new_mean = momentum * running_mean + (1 - momentum) * m,
// new_var alike.
#include "engine/graph/builder.h"
#include "engine/operators/batch_normalization.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& view) {
  const Shape channels = require_channels(view, 0);
  for (std::size_t i = 1; i < 5; ++i) require_per_channel(view, i, channels);
  require_not_negative(view, "epsilon");
  const double momentum = view.attributes().number("momentum");
  if (!(momentum >= 0.0 && momentum <= 1.0)) {
    view.fail("momentum is out of range", "0 to 1", std::to_string(momentum));
  }
  const TensorType& x = view.input(0);
  if (x.elements() == 0) {
    view.fail("x is empty", "an element of each channel at least", to_string(x.shape));
  }
  const TensorType saved{statistics_type(x.dtype), channels};
  return {x, view.input(3), view.input(4), saved, saved};
}

// Running statistics are buffers: nothing flows into or out of them.
Gradients gradient(GradientContext& c) {
  Gradients dx(c.node.inputs.size());
  if (!c.dy[0]) return dx;
  const std::vector<ValueId> outputs =
      c.g.node("BatchNormalizationGrad", {c.dy[0], c.x(0), c.x(1), c.y(3), c.y(4)},
               {{"epsilon", c.node.attributes.number("epsilon")}});
  dx[0] = outputs[0];
  dx[1] = outputs[1];
  dx[2] = c.g.cast(outputs[2], c.g.dtype(c.x(2)));
  return dx;
}

Cost cost(const NodeView& view) {
  // x is read twice: for the statistics and for y.
  return {7 * element_number(view.input(0)),
          operand_bytes(view) + static_cast<double>(view.input(0).bytes())};
}

}  // namespace

Operator batch_normalization_training() {
  return {.name = "BatchNormalizationTraining",
          .inputs = {{"x"}, {"scale"}, {"bias"}, {"running_mean"}, {"running_var"}},
          .outputs = {{"y"}, {"new_mean"}, {"new_var"}, {"saved_mean"}, {"saved_rstd"}},
          .attributes = {{"epsilon", 1e-5}, {"momentum", 0.9}},
          .infer = infer,
          .gradient = gradient,
          .cost = cost,
          .aliases = {{.output = 1, .input = 3}, {.output = 2, .input = 4}},
          .precision = Precision::float32};
}

}  // namespace tandem::operators
