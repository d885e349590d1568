// Split: sizes, or equal parts.
#include <fmt/format.h>

#include <algorithm>

#include "importer/chosen_rows.h"
#include "importer/node_context.h"

namespace tandem::importer::operators {

// Sizes: an attribute (1 to 12; in version 1 also an input), an input (13), or equal parts.
void split(NodeContext& node) {
  Shape x = node.shape(0);
  Term operand = node.in(0);
  const std::int64_t axis = node.axis(node.integer("axis", 0), node.rank(0));
  Ints sizes = node.integers("split", {});
  if (node.has(1)) sizes = node.static_integers(1, "split");
  if (!sizes.empty() && operand.rows && operand.rows->axis == static_cast<std::size_t>(axis)) {
    // The file says how many data chooses.
    std::int64_t all = 0;
    for (const std::int64_t size : sizes) all += std::clamp<std::int64_t>(size, 0, 1 << 20);
    if (all <= x[static_cast<std::size_t>(axis)])
      operand = first_chosen_rows(node.session(), operand, all);
    x = operand.type.shape;
  }
  const std::int64_t extent = x[static_cast<std::size_t>(axis)];
  if (sizes.empty()) {
    const std::int64_t parts =
        node.integer("num_outputs", static_cast<std::int64_t>(node.output_count()));
    if (parts < 1 || parts > (1 << 20))
      node.fail("number of parts", "1 or more", std::to_string(parts));
    if (node.version() < 18 && extent % parts != 0) {
      node.fail("equal parts of the axis", fmt::format("a multiple of {}", parts),
                std::to_string(extent));
    }
    const std::int64_t size = (extent + parts - 1) / parts;  // the last one may be smaller
    for (std::int64_t i = 0; i < parts; ++i) {
      sizes.push_back(std::clamp<std::int64_t>(extent - i * size, 0, size));
    }
  }
  std::int64_t sum = 0;
  for (std::int64_t size : sizes) {
    if (size < 0 || size > extent)
      node.fail("size of a part", fmt::format("0 to {}", extent), std::to_string(size));
    sum += size;
  }
  if (sum != extent) node.fail("sum of the parts", std::to_string(extent), std::to_string(sum));
  if (node.output_count() != sizes.size()) {
    node.fail("number of parts", std::to_string(node.output_count()), std::to_string(sizes.size()));
  }
  const std::vector<Term> parts =
      node.make_all("Split", {operand}, {{"axis", axis}, {"sizes", sizes}});
  for (std::size_t i = 0; i < parts.size(); ++i) node.out(i, parts[i]);
}

}  // namespace tandem::importer::operators
