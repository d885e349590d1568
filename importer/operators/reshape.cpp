// Operators that change only the shape: Reshape, Flatten, Squeeze, Unsqueeze.
#include <fmt/format.h>

#include <algorithm>

#include "importer/chosen_rows.h"
#include "importer/operators/rebatch.h"

namespace tandem::importer::operators {
namespace {

void reshape_to(NodeContext& node, Shape shape) {
  node.out(0, node.make("Reshape", {node.in(0)}, {{"shape", std::move(shape)}}));
}

// The rows of x that data chooses lie along `axis`, which extents of 1 leave a Reshape no way to
// know.
Term with_rows_along(Term made, const Term& x, std::size_t axis) {
  if (!x.rows || !made.rows || made.rows->valid != x.rows->valid) return made;
  return with_chosen_rows(std::move(made), axis, x.rows->valid, x.rows->cause);
}

// Axes are an attribute before version 13, then an input.
std::optional<Ints> axes_of(NodeContext& node) {
  if (node.version() < 13) return node.integers("axes");
  if (!node.has(1)) return std::nullopt;
  return node.static_integers(1, "axes");
}

}  // namespace

void reshape(NodeContext& node) {
  const Ints target =
      node.version() < 5 ? node.integers("shape", {}) : node.static_integers(1, "shape");
  for (std::int64_t extent : target) {
    if (extent < -1) node.fail("shape", "extents, 0 or one -1", to_string(Shape(target)));
  }
  const Shape shape = reshape_target(node, target, node.flag("allowzero", false));
  if (node.version() < 5 || !node.in(1).counts) return reshape_to(node, shape);
  if (!node.in(0).rows) refuse_chosen_setting(node.session(), "Reshape", node.in(1));
  const Term made = node.make("Reshape", {node.in(0)}, {{"shape", shape}});
  node.out(0, with_counted_extents(node.session(), node.in(1), made));
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

void squeeze(NodeContext& node) {
  const Shape& x = node.shape(0);
  const std::optional<Ints> given = axes_of(node);
  const Ints axes = given ? node.axes(*given, node.rank(0)) : Ints{};
  Shape shape;
  std::optional<std::size_t> rows;  // the axis of those that data chooses, where it stays
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool named = std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i));
    if (named && x[i] != 1) node.fail("extent of a squeezed axis", "1", std::to_string(x[i]));
    if (named || (!given && x[i] == 1)) continue;
    if (node.in(0).rows && node.in(0).rows->axis == i) rows = shape.size();
    shape.push_back(x[i]);
  }
  const Term made = node.make("Reshape", {node.in(0)}, {{"shape", std::move(shape)}});
  node.out(0, rows ? with_rows_along(made, node.in(0), *rows) : made);
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
  std::size_t rows = 0;  // the axis of those that data chooses
  for (std::size_t i = 0; i < rank; ++i) {
    if (std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i))) continue;
    if (node.in(0).rows && x.begin() + static_cast<std::ptrdiff_t>(node.in(0).rows->axis) == next)
      rows = i;
    shape[i] = *next++;
  }
  const Term made = node.make("Reshape", {node.in(0)}, {{"shape", std::move(shape)}});
  node.out(0, with_rows_along(made, node.in(0), rows));
}

}  // namespace tandem::importer::operators
