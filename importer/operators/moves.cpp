// Operators that move or view elements: shapes, order, joining, types, look-ups.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "importer/operators/all.h"
#include "importer/operators/rebatch.h"
#include "importer/tensor_data.h"

namespace tandem::importer {
namespace {

void identity(NodeContext& node) { node.out(0, node.make("Identity", {node.in(0)})); }

void reshape_to(NodeContext& node, Shape shape) {
  node.out(0, node.make("Reshape", {node.in(0)}, {{"shape", std::move(shape)}}));
}

void reshape(NodeContext& node) {
  const Ints target =
      node.version() < 5 ? node.integers("shape", {}) : node.static_integers(1, "shape");
  for (std::int64_t extent : target) {
    if (extent < -1) node.fail("shape", "extents, 0 or one -1", to_string(Shape(target)));
  }
  reshape_to(node, reshape_target(node, target, node.flag("allowzero", false)));
}

void flatten(NodeContext& node) {
  const Shape& x = node.shape(0);
  const std::int64_t rank = node.rank(0), given = node.integer("axis", 1);
  if (given < -rank || given > rank) {
    node.fail("axis", fmt::format("{} to {}", -rank, rank), std::to_string(given));
  }
  const auto cut = x.begin() + (given < 0 ? given + rank : given);
  reshape_to(node, {element_count(Shape(x.begin(), cut)), element_count(Shape(cut, x.end()))});
}

// Axes are an attribute before version 13, then an input.
std::optional<Ints> axes_of(NodeContext& node) {
  if (node.version() < 13) return node.integers("axes");
  if (!node.has(1)) return std::nullopt;
  return node.static_integers(1, "axes");
}

void squeeze(NodeContext& node) {
  const Shape& x = node.shape(0);
  const std::optional<Ints> given = axes_of(node);
  const Ints axes = given ? node.axes(*given, node.rank(0)) : Ints{};
  Shape shape;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool named = std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i));
    if (named && x[i] != 1) node.fail("extent of a squeezed axis", "1", std::to_string(x[i]));
    if (!named && (given || x[i] != 1)) shape.push_back(x[i]);
  }
  reshape_to(node, std::move(shape));
}

void unsqueeze(NodeContext& node) {
  const std::optional<Ints> given = axes_of(node);
  if (!given) node.fail("axes are missing");
  const Shape& x = node.shape(0);
  const std::size_t rank = x.size() + given->size();
  const Ints axes = node.axes(*given, static_cast<std::int64_t>(rank));
  Shape shape(rank, 0);
  for (std::int64_t axis : axes) shape[static_cast<std::size_t>(axis)] = 1;
  auto next = x.begin();
  for (std::size_t i = 0; i < rank; ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i)))
      shape[i] = *next++;
  }
  reshape_to(node, std::move(shape));
}

void transpose(NodeContext& node) {
  const auto rank = static_cast<std::size_t>(node.rank(0));
  Ints reversed(rank);
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  const Ints perm = node.integers("perm", reversed);
  if (perm.size() != rank || node.axes(perm, node.rank(0)).size() != rank) {
    node.fail("perm", fmt::format("{} axes", rank), to_string(Shape(perm)));
  }
  Ints positive = perm;
  for (std::int64_t& axis : positive) axis = node.axis(axis, node.rank(0));
  node.out(0, node.make("Transpose", {node.in(0)}, {{"perm", positive}}));
}

void concat(NodeContext& node) {
  const std::int64_t axis =
      node.axis(node.version() < 4 ? node.integer("axis", 1) : node.integer("axis"), node.rank(0));
  std::vector<Term> parts = node.inputs();
  if (parts.size() == 1) {
    node.out(0, node.make("Identity", parts));
  } else {
    node.out(0, node.make("Concat", parts, {{"axis", axis}}));
  }
}

void expand(NodeContext& node) {
  const Shape& x = node.shape(0);
  const Ints target = expand_target(node, node.static_integers(1, "shape"));
  if (!checked_elements(target, std::int64_t{1} << 48)) {
    node.fail("shape", "extents >= 0", to_string(Shape(target)));
  }
  const auto shape = broadcast_shape(x, target);
  if (!shape) {
    node.fail("the input cannot be broadcast to the shape", to_string(Shape(target)), to_string(x));
  }
  node.out(0, node.make("Expand", {node.in(0)}, {{"shape", *shape}}));
}

// [d0, d1] repeated r0, r1 times: [1, d0, 1, d1] expanded to [r0, d0, r1, d1].
void tile(NodeContext& node) {
  if (node.version() < 6) node.unsupported("versions before 6");
  const Shape& x = node.shape(0);
  const Ints repeats = node.static_integers(1, "repeats");
  if (repeats.size() != x.size()) {
    node.fail("repeats", fmt::format("{} numbers", x.size()), to_string(Shape(repeats)));
  }
  Shape apart, repeated, joined;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool fits =
        repeats[i] >= 0 && checked_elements({repeats[i], x[i]}, std::int64_t{1} << 48);
    if (!fits) node.fail("repeats", "numbers >= 0", to_string(Shape(repeats)));
    apart.insert(apart.end(), {1, x[i]});
    repeated.insert(repeated.end(), {repeats[i], x[i]});
    joined.push_back(repeats[i] * x[i]);
  }
  if (!checked_elements(joined, std::int64_t{1} << 48)) node.fail("the result is too large");
  const Term wide = node.expand(node.reshape(node.in(0), apart), repeated);
  node.out(0, node.make("Reshape", {wide}, {{"shape", joined}}));
}

// Whether the channel is the first of [C, b, b] (mode CRD), else the last of [b, b, C] (DCR).
bool channel_is_first(NodeContext& node) {
  const std::string mode = node.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") node.fail("mode", "DCR or CRD", mode);
  return mode == "CRD";
}

std::int64_t block_size(NodeContext& node) {
  if (node.rank(0) != 4) node.fail("input", "[N, C, H, W]", to_string(node.shape(0)));
  const std::int64_t block = node.integer("blocksize");
  if (block < 1 || block > (1 << 15)) node.fail("blocksize", "1 to 2^15", std::to_string(block));
  return block;
}

// [N, C b b, H, W] to [N, C, H b, W b]
void depth_to_space(NodeContext& node) {
  const std::int64_t b = block_size(node);
  const Shape& x = node.shape(0);
  if (x[1] % (b * b) != 0) {
    node.fail("channels", fmt::format("a multiple of {}", b * b), std::to_string(x[1]));
  }
  const std::int64_t c = x[1] / (b * b);
  const Term apart = channel_is_first(node)
                         ? node.transpose(node.reshape(node.in(0), {x[0], c, b, b, x[2], x[3]}),
                                          {0, 1, 4, 2, 5, 3})
                         : node.transpose(node.reshape(node.in(0), {x[0], b, b, c, x[2], x[3]}),
                                          {0, 3, 4, 1, 5, 2});
  node.out(0, node.make("Reshape", {apart}, {{"shape", Ints{x[0], c, x[2] * b, x[3] * b}}}));
}

// [N, C, H b, W b] to [N, C b b, H, W]
void space_to_depth(NodeContext& node) {
  const std::int64_t b = block_size(node);
  const Shape& x = node.shape(0);
  if (x[2] % b != 0 || x[3] % b != 0) {
    node.fail("height and width", fmt::format("multiples of {}", b), to_string(x));
  }
  const std::int64_t h = x[2] / b, w = x[3] / b;
  const Term apart =
      node.transpose(node.reshape(node.in(0), {x[0], x[1], h, b, w, b}),
                     channel_is_first(node) ? Ints{0, 1, 3, 5, 2, 4} : Ints{0, 3, 5, 1, 2, 4});
  node.out(0, node.make("Reshape", {apart}, {{"shape", Ints{x[0], x[1] * b * b, h, w}}}));
}

DType cast_target(NodeContext& node) {
  const onnx::AttributeProto* to = node.attribute("to");
  if (to == nullptr) node.fail("attribute 'to' is missing");
  std::int64_t type = to->i();
  if (node.version() < 6) {
    onnx::TensorProto_DataType named{};
    if (!onnx::TensorProto_DataType_Parse(to->s(), &named))
      node.fail("attribute 'to'", "a type", to->s());
    type = named;
  }
  const auto dtype = dtype_from_onnx(static_cast<std::int32_t>(type));
  if (!dtype || type != static_cast<std::int32_t>(type)) {
    node.unsupported("element type " + onnx_type_name(static_cast<std::int32_t>(type)) +
                     " is not supported");
  }
  return *dtype;
}

void cast_as(NodeContext& node, DType dtype) {
  node.out(0, node.make("Cast", {node.in(0)}, {{"to", std::string(name_of(dtype))}}));
}
void cast(NodeContext& node) { cast_as(node, cast_target(node)); }
void cast_like(NodeContext& node) { cast_as(node, node.dtype(1)); }

void gather(NodeContext& node) {
  const std::int64_t axis = node.axis(node.integer("axis", 0), node.rank(0));
  node.out(0, node.make("Gather", {node.in(0), node.in(1)}, {{"axis", axis}}));
}

void trilu(NodeContext& node) {
  const std::int64_t k = node.has(1) ? node.static_integer(1, "k") : 0;
  const std::int64_t limit = std::int64_t{1} << 40;  // far beyond any extent
  node.out(0, node.make("Trilu", {node.in(0)},
                        {{"upper", std::int64_t{node.flag("upper", true)}},
                         {"k", std::clamp(k, -limit, limit)}}));
}

}  // namespace

void add_moves(std::vector<Lowering>& list) {
  list.push_back({"Identity", identity});
  list.push_back({"Reshape", reshape});
  list.push_back({"Flatten", flatten});
  list.push_back({"Squeeze", squeeze});
  list.push_back({"Unsqueeze", unsqueeze});
  list.push_back({"Transpose", transpose});
  list.push_back({"Concat", concat});
  list.push_back({"Expand", expand});
  list.push_back({"Tile", tile});
  list.push_back({"DepthToSpace", depth_to_space});
  list.push_back({"SpaceToDepth", space_to_depth});
  list.push_back({"Cast", cast});
  list.push_back({"CastLike", cast_like});
  list.push_back({"Gather", gather});
  list.push_back({"Trilu", trilu});
}

}  // namespace tandem::importer
