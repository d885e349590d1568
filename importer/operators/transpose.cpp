// Transpose: axes in another order, by default the opposite one.
#include <fmt/format.h>

#include <numeric>

#include "importer/node_context.h"

namespace tandem::importer::operators {

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

}  // namespace tandem::importer::operators
