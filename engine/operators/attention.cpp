// y = p v with p = softmax(scale * q k^T + mask), row by row; log_sum_exp of each row is kept for
// the gradient, which computes p again. A query that sees no key gets y = 0 and log_sum_exp =
// -infinity.
#include "engine/graph/builder.h"
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

struct AttentionSizes {
  std::int64_t b, h, s, t, d, e;  // batch, heads, queries, keys, key size, value size

  double scores() const { return static_cast<double>(b * h) * static_cast<double>(s * t); }
};

/// Checks q, k, v at inputs first, first + 1, first + 2 and the mask.
AttentionSizes require_operands(const NodeView& view, std::size_t first, std::size_t mask) {
  require_float(view, first);
  const DType dtype = view.input(first).dtype;
  const Shape& q = view.input(first).shape;
  const Shape& v = view.input(first + 2).shape;
  for (std::size_t i = first; i < first + 3; ++i) {
    require_dtype(view, i, dtype);
    require_rank(view, i, 4);
  }
  const Shape& k = view.input(first + 1).shape;
  require_shape(view, first + 1, {q[0], q[1], k[2], q[3]});
  require_shape(view, first + 2, {q[0], q[1], k[2], v[3]});
  if (q[2] < 1 || k[2] < 1) {
    view.fail("there are no queries or no keys", "1 at least",
              to_string(q) + " and " + to_string(k));
  }
  const AttentionSizes sizes{q[0], q[1], q[2], k[2], q[3], v[3]};
  if (view.has_input(mask)) {
    require_dtype(view, mask, dtype);
    const Shape scores{sizes.b, sizes.h, sizes.s, sizes.t};
    const Shape& shape = view.input(mask).shape;
    if (broadcast_shape(shape, scores) != scores) {
      view.fail("the mask does not broadcast to [B, H, S, T]", to_string(scores), to_string(shape));
    }
  }
  const double scale = view.attributes().number("scale");
  if (!(scale > -1e30 && scale < 1e30)) {
    view.fail("scale is out of range", "a finite number", std::to_string(scale));
  }
  require_flag(view, "causal");
  return sizes;
}

std::vector<TensorType> infer_attention(const NodeView& view) {
  const AttentionSizes n = require_operands(view, 0, 3);
  const DType dtype = view.input(0).dtype;
  return {{dtype, {n.b, n.h, n.s, n.e}}, {statistics_type(dtype), {n.b, n.h, n.s}}};
}

Gradients attention_gradient(GradientContext& c) {
  Gradients dx(c.node.inputs.size());
  if (!c.dy[0]) return dx;
  std::vector<ValueId> inputs{c.dy[0], c.x(0), c.x(1), c.x(2), c.y(0), c.y(1)};
  if (c.node.inputs.size() > 3) inputs.push_back(c.x(3));
  const std::vector<ValueId> outputs =
      c.g.node("AttentionGrad", std::move(inputs), c.node.attributes);
  for (std::size_t i = 0; i < 3; ++i) dx[i] = outputs[i];
  return dx;
}

/// A causal mask hides half of the scores of a square.
double visible_scores(const NodeView& view, const AttentionSizes& n) {
  return view.attributes().flag("causal") && n.s > 1 ? n.scores() / 2 : n.scores();
}

Cost attention_cost(const NodeView& view) {
  const AttentionSizes n = require_operands(view, 0, 3);
  return {visible_scores(view, n) * (2.0 * static_cast<double>(n.d + n.e) + 5.0),
          operand_bytes(view)};
}

std::vector<TensorType> infer_attention_grad(const NodeView& view) {
  const AttentionSizes n = require_operands(view, 1, 6);
  const DType dtype = view.input(1).dtype;
  const TensorType y{dtype, {n.b, n.h, n.s, n.e}};
  require_type(view, 0, y);
  require_type(view, 4, y);
  require_type(view, 5, {statistics_type(dtype), {n.b, n.h, n.s}});
  return {view.input(1), view.input(2), view.input(3)};
}

// Scores again, dp, dv, dq and dk: five products.
Cost attention_grad_cost(const NodeView& view) {
  const AttentionSizes n = require_operands(view, 1, 6);
  return {visible_scores(view, n) * (2.0 * static_cast<double>(3 * n.d + 2 * n.e) + 8.0),
          operand_bytes(view)};
}

std::vector<AttributeSpec> attention_attributes() {
  return {{"scale", 1.0, true}, {"causal", std::int64_t{0}}};
}

}  // namespace

Operator attention() {
  return {.name = "Attention",
          .inputs = {{"q"}, {"k"}, {"v"}, {.name = "mask", .optional = true}},
          .outputs = {{"y"}, {"log_sum_exp"}},
          .attributes = attention_attributes(),
          .infer = infer_attention,
          .gradient = attention_gradient,
          .cost = attention_cost,
          .precision = Precision::low,
          .drops_elements = true};
}

// With ds = p * (dy v^T - sum(dy * y)): dq = scale * ds k, dk = scale * ds^T q, dv = p^T dy.
Operator attention_grad() {
  return {.name = "AttentionGrad",
          .inputs = {{"dy"},
                     {"q"},
                     {"k"},
                     {"v"},
                     {"y"},
                     {.name = "log_sum_exp", .statistic = true},
                     {.name = "mask", .optional = true}},
          .outputs = {{"dq"}, {"dk"}, {"dv"}},
          .attributes = attention_attributes(),
          .infer = infer_attention_grad,
          .not_differentiable = "second derivatives of Attention are not offered",
          .cost = attention_grad_cost,
          .precision = Precision::low,
          .engine_only = true};
}

}  // namespace tandem::operators
