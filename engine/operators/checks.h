// Checks of operand types that many operators share; each throws through NodeView::fail.
#pragma once

#include <string>

#include "engine/operators/operator.h"

namespace tandem {

/// The name of input i as the operator declares it.
inline std::string input_name(const NodeView& node, std::size_t i) {
  const std::vector<Port>& ports = node.node.op->inputs;
  return "'" + (i < ports.size() ? ports[i] : ports.back()).name + "'";
}

inline void require_float(const NodeView& node, std::size_t i) {
  if (is_float(node.input(i).dtype)) return;
  node.fail("element type of " + input_name(node, i), "a floating point type",
            std::string(name_of(node.input(i).dtype)));
}

inline void require_number(const NodeView& node, std::size_t i) {
  if (node.input(i).dtype != DType::boolean) return;
  node.fail("element type of " + input_name(node, i), "a number", "bool");
}

inline void require_integer(const NodeView& node, std::size_t i) {
  if (is_integer(node.input(i).dtype)) return;
  node.fail("element type of " + input_name(node, i), "an integer",
            std::string(name_of(node.input(i).dtype)));
}

inline void require_dtype(const NodeView& node, std::size_t i, DType dtype) {
  if (node.input(i).dtype == dtype) return;
  node.fail("element type of " + input_name(node, i), std::string(name_of(dtype)),
            std::string(name_of(node.input(i).dtype)));
}

/// Inputs i and j have one element type.
inline void require_same_dtype(const NodeView& node, std::size_t i, std::size_t j) {
  if (node.input(i).dtype == node.input(j).dtype) return;
  node.fail(input_name(node, i) + " and " + input_name(node, j) + " differ in element type",
            std::string(name_of(node.input(i).dtype)), std::string(name_of(node.input(j).dtype)));
}

inline void require_shape(const NodeView& node, std::size_t i, const Shape& shape) {
  if (node.input(i).shape == shape) return;
  node.fail("shape of " + input_name(node, i), to_string(shape), to_string(node.input(i).shape));
}

inline void require_rank(const NodeView& node, std::size_t i, std::size_t rank) {
  if (node.input(i).rank() == rank) return;
  node.fail("rank of " + input_name(node, i), std::to_string(rank),
            std::to_string(node.input(i).rank()));
}

/// The attribute `axis`, which must lie in [0, rank).
inline std::size_t checked_axis(const NodeView& node, std::size_t rank) {
  const std::int64_t axis = node.attributes().integer("axis");
  if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) {
    node.fail("axis out of range", "0 <= axis < " + std::to_string(rank), std::to_string(axis));
  }
  return static_cast<std::size_t>(axis);
}

/// An attribute with one integer for each axis of the operand.
inline const Ints& checked_per_axis(const NodeView& node, std::string_view name,
                                    std::size_t count) {
  const Ints& values = node.attributes().integers(name);
  if (values.size() != count) {
    node.fail("length of attribute '" + std::string(name) + "'", std::to_string(count),
              std::to_string(values.size()));
  }
  return values;
}

/// The element type of what is looked up in input 0: the wider float that the attribute names, or
/// its own where that is empty.
inline DType looked_up_type(const NodeView& node, std::string_view name) {
  const std::string& to = node.attributes().text(name);
  const DType own = node.input(0).dtype;
  if (to.empty() || to == name_of(own)) return own;
  const std::optional<DType> wider = dtype_from_name(to);
  if (!wider || !is_float(*wider) || !is_float(own) || size_of(*wider) < size_of(own)) {
    node.fail("attribute '" + std::string(name) + "'",
              "nothing, or a float that holds every " + std::string(name_of(own)),
              "\"" + to + "\"");
  }
  return *wider;
}

/// An attribute that is a shape: no negative extents.
inline const Ints& checked_shape(const NodeView& node, std::string_view name) {
  const Ints& shape = node.attributes().integers(name);
  for (std::int64_t extent : shape) {
    if (extent < 0)
      node.fail("negative extent in '" + std::string(name) + "'", ">= 0", to_string(shape));
  }
  return shape;
}

}  // namespace tandem
