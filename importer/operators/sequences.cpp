// Sequences of tensors exist during import only: exporters split into them and take the parts out
// again.
#include <fmt/format.h>

#include "importer/node_context.h"

namespace tandem::importer::operators {
namespace {

void out_sequence(NodeContext& node, std::vector<Term> parts) {
  Term term;
  term.sequence = std::make_shared<const std::vector<Term>>(std::move(parts));
  node.out(0, std::move(term));
}

}  // namespace

// Each part is a Slice. `split` is absent (parts of 1), one size for all but the last, or all
// sizes.
void split_to_sequence(NodeContext& node) {
  const Shape& x = node.shape(0);
  const std::int64_t axis = node.axis(node.integer("axis", 0), node.rank(0));
  const auto at = static_cast<std::size_t>(axis);
  Ints sizes;
  if (node.has(1) && node.rank(1) == 1) {
    sizes = node.static_integers(1, "split");
  } else {
    const std::int64_t size = node.has(1) ? node.static_integer(1, "split") : 1;
    if (size < 1) node.fail("split", "a size of 1 or more", std::to_string(size));
    for (std::int64_t left = x[at]; left > 0; left -= size) sizes.push_back(std::min(size, left));
  }
  std::vector<Term> parts;
  Ints starts(x.size(), 0);
  for (std::int64_t size : sizes) {
    Shape part = x;
    part[at] = size;
    if (size < 0 || size > x[at] - starts[at]) {
      node.fail("sum of the parts", std::to_string(x[at]), to_string(Shape(sizes)));
    }
    if (!parts.empty()) node.session().next_part();
    parts.push_back(node.make("Slice", {node.in(0)},
                              {{"starts", starts}, {"sizes", part}, {"steps", Ints(x.size(), 1)}}));
    starts[at] += size;
    if (!node.has(1) && !node.flag("keepdims", true)) {
      part.erase(part.begin() + axis);
      parts.back() = node.reshape(parts.back(), part);
    }
  }
  if (starts[at] != x[at])
    node.fail("sum of the parts", std::to_string(x[at]), std::to_string(starts[at]));
  out_sequence(node, std::move(parts));
}

void sequence_at(NodeContext& node) {
  const std::vector<Term>& parts = *node.sequence(0).sequence;
  const std::int64_t position =
      node.axis(node.static_integer(1, "position"), static_cast<std::int64_t>(parts.size()));
  const Term part = parts[static_cast<std::size_t>(position)];
  if (part.id && node.scope().main && node.wants(0)) {
    node.session().builder.rename(part.id, node.node().output(0));
  }
  node.out(0, part);
}

void sequence_construct(NodeContext& node) { out_sequence(node, node.inputs()); }

void concat_from_sequence(NodeContext& node) {
  std::vector<Term> parts = *node.sequence(0).sequence;
  if (parts.empty()) node.fail("the sequence is empty");
  const bool stack = node.flag("new_axis", false);
  const auto rank = static_cast<std::int64_t>(parts[0].type.rank());
  const std::int64_t axis = node.axis(node.integer("axis"), rank + stack);
  for (Term& part : parts) {
    if (!stack) break;
    if (static_cast<std::int64_t>(part.type.rank()) != rank) node.fail("parts of different ranks");
    Shape shape = part.type.shape;
    shape.insert(shape.begin() + axis, 1);
    part = node.reshape(part, shape);
  }
  node.out(0, parts.size() == 1 ? node.make("Identity", parts)
                                : node.make("Concat", parts, {{"axis", axis}}));
}

}  // namespace tandem::importer::operators
