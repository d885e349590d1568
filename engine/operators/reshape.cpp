// Gives the elements, in row-major order, another shape.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_reshape(const NodeView& node) {
  const Ints& shape = checked_shape(node, "shape");
  if (element_count(shape) != node.input(0).elements()) {
    node.fail("another number of elements", to_string(shape), to_string(node.input(0).shape));
  }
  return {{node.input(0).dtype, shape}};
}

Gradients reshape_gradient(GradientContext& c) { return {c.g.reshape(c.dy[0], c.g.shape(c.x(0)))}; }

// Walks both shapes from the left and pairs the smallest groups of axes with equal products. A
// group can be expressed where its old axes follow each other as in row-major order.
std::optional<Layout> reshape_view(const NodeView& node, const Layout& x) {
  if (!x.is_strided()) return std::nullopt;
  const Shape& to = node.attributes().integers("shape");
  Layout result;
  result.offset = x.offset;
  result.strides.assign(to.size(), 0);
  if (element_count(to) == 0) {
    result.strides = row_major(to).strides;
    return result;
  }

  Shape from, strides;  // axes of extent 1 have no place of their own
  for (std::size_t i = 0; i < node.input(0).rank(); ++i) {
    if (node.input(0).shape[i] == 1) continue;
    from.push_back(node.input(0).shape[i]);
    strides.push_back(x.strides[i]);
  }
  std::size_t old_axis = 0, new_axis = 0;
  while (old_axis < from.size()) {
    std::size_t old_end = old_axis + 1, new_end = new_axis + 1;
    std::int64_t old_product = from[old_axis], new_product = to[new_axis];
    while (old_product != new_product) {
      if (old_product < new_product) {
        old_product *= from[old_end++];
      } else {
        new_product *= to[new_end++];
      }
    }
    for (std::size_t i = old_axis; i + 1 < old_end; ++i) {
      if (strides[i] != from[i + 1] * strides[i + 1]) return std::nullopt;
    }
    std::int64_t stride = strides[old_end - 1];
    for (std::size_t i = new_end; i-- > new_axis;) {
      result.strides[i] = stride;
      stride *= to[i];
    }
    old_axis = old_end;
    new_axis = new_end;
  }
  // What is left are axes of extent 1: any stride is right; a row-major one keeps row-major
  // row-major.
  for (std::size_t i = to.size(); i-- > new_axis;) result.strides[i] = 1;
  return result;
}

}  // namespace

Operator reshape() {
  return {.name = "Reshape",
          .role = Role::reshape,
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {{"shape", Ints(), true}},
          .infer = infer_reshape,
          .gradient = reshape_gradient,
          .view = reshape_view,
          .takes_float8 = true};
}

}  // namespace tandem::operators
