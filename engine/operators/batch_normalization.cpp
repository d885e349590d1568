// Batch normalisation with given statistics and with those of the batch, and its gradient.
#include "engine/graph/builder.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

/// x (input `i`) is [N, C, ...] of floats; returns [C].
Shape require_channels(const NodeView& view, std::size_t i) {
  require_float(view, i);
  const Shape& x = view.input(i).shape;
  if (x.size() < 2) {
    view.fail(input_name(view, i) + " has the wrong rank", "[N, C, ...]", to_string(x));
  }
  return {x[1]};
}

/// Input `i` is a float for each channel.
void require_per_channel(const NodeView& view, std::size_t i, const Shape& channels) {
  require_float(view, i);
  require_shape(view, i, channels);
}

std::vector<TensorType> infer_of_inference(const NodeView& view) {
  const Shape channels = require_channels(view, 0);
  for (std::size_t i = 1; i < 5; ++i) require_per_channel(view, i, channels);
  require_not_negative(view, "epsilon");
  return {view.input(0)};
}

// The statistics are constants here: with rstd = 1 / sqrt(var + epsilon),
// dx = dy * scale * rstd, dscale = sum(dy * (x - mean) * rstd), dbias = sum(dy).
Gradients gradient_of_inference(GradientContext& c) {
  Gradients dx(c.node.inputs.size());
  const ValueId dy = c.dy[0];
  if (!dy) return dx;
  GraphBuilder& g = c.g;
  const DType dtype = g.dtype(c.x(0));
  Shape per_channel(g.shape(c.x(0)).size(), 1);
  per_channel[1] = g.shape(c.x(0))[1];
  const auto widened = [&](ValueId v) { return g.reshape(g.cast(v, dtype), per_channel); };
  Ints axes{0};
  for (std::size_t i = 2; i < per_channel.size(); ++i) axes.push_back(std::int64_t(i));

  if (c.wanted[0] || c.wanted[1]) {
    const ValueId var = g.cast(c.x(4), dtype);
    const ValueId epsilon = g.scalar(c.node.attributes.number("epsilon"), dtype);
    const ValueId rstd = g.add_node("Reciprocal", {g.add_node("Sqrt", {g.add(var, epsilon)})});
    if (c.wanted[0]) {
      dx[0] = g.mul(dy, g.reshape(g.mul(g.cast(c.x(1), dtype), rstd), per_channel));
    }
    if (c.wanted[1]) {
      const ValueId centred = g.mul(dy, g.sub(c.x(0), widened(c.x(3))));
      dx[1] = g.cast(g.mul(g.reduce_sum(centred, axes, false), rstd), g.dtype(c.x(1)));
    }
  }
  if (c.wanted[2]) dx[2] = g.cast(g.reduce_sum(dy, axes, false), g.dtype(c.x(2)));
  return dx;
}

std::vector<TensorType> infer_of_training(const NodeView& view) {
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
Gradients gradient_of_training(GradientContext& c) {
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

Cost cost_of_training(const NodeView& view) {
  // x is read twice: for the statistics and for y.
  return {7 * element_number(view.input(0)),
          operand_bytes(view) + static_cast<double>(view.input(0).bytes())};
}

std::vector<TensorType> infer_of_grad(const NodeView& view) {
  const Shape channels = require_channels(view, 1);
  const TensorType& x = view.input(1);
  require_type(view, 0, x);
  require_per_channel(view, 2, channels);
  const TensorType saved{statistics_type(x.dtype), channels};
  require_type(view, 3, saved);
  require_type(view, 4, saved);
  return {x, view.input(2), view.input(2)};
}

Cost cost_of_grad(const NodeView& view) {
  // dy and x are read twice: for the sums and for dx.
  return {10 * element_number(view.input(1)),
          operand_bytes(view) + 2 * static_cast<double>(view.input(1).bytes())};
}

}  // namespace

// y = (x - mean) / sqrt(var + epsilon) * scale + bias with given statistics, per channel (axis 1).
Operator batch_normalization() {
  return {.name = "BatchNormalization",
          .inputs = {{"x"}, {"scale"}, {"bias"}, {"mean"}, {"var"}},
          .outputs = {{"y"}},
          .attributes = {{"epsilon", 1e-5}},
          .infer = infer_of_inference,
          .gradient = gradient_of_inference,
          .cost = cost_by_elements<2, 0>,
          .precision = Precision::float32};
}

// y = (x - m) * r * scale + bias per channel, with the batch's mean m and r = 1 / sqrt(v +
// epsilon), v its population variance; new_mean = momentum * running_mean + (1 - momentum) * m,
// new_var alike.
Operator batch_normalization_training() {
  return {.name = "BatchNormalizationTraining",
          .inputs = {{"x"}, {"scale"}, {"bias"}, {"running_mean"}, {"running_var"}},
          .outputs = {{"y"}, {"new_mean"}, {"new_var"}, {"saved_mean"}, {"saved_rstd"}},
          .attributes = {{"epsilon", 1e-5}, {"momentum", 0.9}},
          .infer = infer_of_training,
          .gradient = gradient_of_training,
          .cost = cost_of_training,
          .aliases = {{.output = 1, .input = 3}, {.output = 2, .input = 4}},
          .precision = Precision::float32};
}

// With n = (x - mean) * rstd and M elements a channel: dbias = sum(dy), dscale = sum(dy * n),
// dx = scale * rstd * (dy - dbias / M - n * dscale / M).
Operator batch_normalization_grad() {
  return {.name = "BatchNormalizationGrad",
          .inputs = {{"dy"}, {"x"}, {"scale"}, {"saved_mean"}, {"saved_rstd"}},
          .outputs = {{"dx"}, {"dscale"}, {"dbias"}},
          .attributes = {{"epsilon", 1e-5}},
          .infer = infer_of_grad,
          .not_differentiable = "second derivatives of BatchNormalization are not offered",
          .cost = cost_of_grad,
          .precision = Precision::float32,
          .engine_only = true};
}

}  // namespace tandem::operators
