// y = (x - mean) / sqrt(var + epsilon) * scale + bias with given statistics, per channel (axis 1).
#include "engine/operators/batch_normalization.h"

#include "engine/graph/builder.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& view) {
  const Shape channels = require_channels(view, 0);
  for (std::size_t i = 1; i < 5; ++i) require_per_channel(view, i, channels);
  require_not_negative(view, "epsilon");
  return {view.input(0)};
}

// The statistics are constants here: with rstd = 1 / sqrt(var + epsilon),
// dx = dy * scale * rstd, dscale = sum(dy * (x - mean) * rstd), dbias = sum(dy).
Gradients gradient(GradientContext& c) {
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

Cost cost(const NodeView& view) { return {2 * element_number(view.input(0)), operand_bytes(view)}; }

}  // namespace

Operator batch_normalization() {
  return {.name = "BatchNormalization",
          .inputs = {{"x"}, {"scale"}, {"bias"}, {"mean"}, {"var"}},
          .outputs = {{"y"}},
          .attributes = {{"epsilon", 1e-5}},
          .infer = infer,
          .gradient = gradient,
          .cost = cost,
          .precision = Precision::float32};
}

}  // namespace tandem::operators
