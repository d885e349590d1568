// y's axis i is x's axis perm[i].
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_transpose(const NodeView& node) {
  const TensorType& x = node.input(0);
  const Ints& perm = checked_per_axis(node, "perm", x.rank());
  std::vector<bool> seen(x.rank());
  Shape shape;
  for (std::int64_t axis : perm) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(x.rank()) || seen[axis]) {
      node.fail("attribute 'perm'", "each axis once", to_string(perm));
    }
    seen[axis] = true;
    shape.push_back(x.shape[axis]);
  }
  return {{x.dtype, shape}};
}

// dx = dy with the inverse permutation
Gradients transpose_gradient(GradientContext& c) {
  const Ints& perm = c.node.attributes.integers("perm");
  Ints inverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) inverse[perm[i]] = static_cast<std::int64_t>(i);
  return {c.g.transpose(c.dy[0], std::move(inverse))};
}

std::optional<Layout> transpose_view(const NodeView& node, const Layout& x) {
  if (!x.is_strided()) return std::nullopt;
  Layout result;
  result.offset = x.offset;
  for (std::int64_t axis : node.attributes().integers("perm")) {
    result.strides.push_back(x.strides[axis]);
  }
  return result;
}

}  // namespace

Operator transpose() {
  return {.name = "Transpose",
          .role = Role::transpose,
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {{"perm", Ints(), true}},
          .infer = infer_transpose,
          .gradient = transpose_gradient,
          .view = transpose_view,
          .takes_float8 = true};
}

}  // namespace tandem::operators
