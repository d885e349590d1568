// Expand and Tile: elements repeated by broadcasting.
#include <fmt/format.h>

#include "importer/chosen_rows.h"
#include "importer/file/tensor_data.h"
#include "importer/operators/rebatch.h"

namespace tandem::importer::operators {

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
  const Term made = node.make("Expand", {node.in(0)}, {{"shape", *shape}});
  node.out(0, with_counted_extents(node.session(), node.in(1), made));
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
  if (wide.rows && repeats[wide.rows->axis / 2] != 1)
    refuse_chosen_setting(node.session(), "Tile", wide);
  node.out(0, node.make("Reshape", {wide}, {{"shape", joined}}));
}

}  // namespace tandem::importer::operators
