// Lookups and updates by indices along an axis and by tuples of them, which become flat ones:
// GatherND, GatherElements, ScatterND, ScatterElements.
#include <fmt/format.h>

#include <algorithm>

#include "importer/operators/elements_of.h"
#include "importer/operators/rebatch.h"

namespace tandem::importer::operators {
namespace {

// FlatIndices over tuples [p..., k].
Term flat_indices(NodeContext& node, const Term& tuples, Ints extents, Ints strides,
                  Ints position_strides) {
  return node.make("FlatIndices", {tuples},
                   {{"extents", std::move(extents)},
                    {"strides", std::move(strides)},
                    {"position_strides", std::move(position_strides)}});
}

/// What the tuples of GatherND and ScatterND point to: x as [rows, rest...], and a row for each.
struct Tuples {
  Term rows, indices;
  Shape rest;
};

Tuples read_tuples(NodeContext& node, std::int64_t batch_axes) {
  const Shape &x = node.shape(0), &indices = node.shape(1);
  const auto batch = static_cast<std::size_t>(batch_axes);
  const bool fits = batch_axes >= 0 && x.size() > batch && indices.size() > batch;
  if (!fits || !std::equal(x.begin(), x.begin() + batch_axes, indices.begin())) {
    node.fail("the first axes of the operands",
              fmt::format("{} that both have, and others after them", batch_axes),
              to_string(x) + " and " + to_string(indices));
  }
  const std::int64_t length = indices.back();
  const auto width = static_cast<std::size_t>(length);
  if (length < 1 || batch + width > x.size()) {
    node.fail("last axis of the indices", fmt::format("1 to {} numbers", x.size() - batch),
              std::to_string(length));
  }
  Tuples t;
  t.rest.assign(x.begin() + batch_axes + length, x.end());
  Shape rows{elements_of(x, 0, batch + width)};
  rows.insert(rows.end(), t.rest.begin(), t.rest.end());
  t.rows = node.reshape(node.in(0), rows);
  const Shape places(indices.begin(), indices.end() - 1);
  if (batch == 0 && width == 1) {
    t.indices = node.reshape(node.in(1), places);
    return t;
  }
  Ints extents, strides, positions(places.size(), 0);
  for (std::size_t i = 0; i < width; ++i) {
    extents.push_back(x[batch + i]);
    strides.push_back(elements_of(x, batch + i + 1, batch + width));
  }
  for (std::size_t i = 0; i < batch; ++i) positions[i] = elements_of(x, i + 1, batch + width);
  t.indices = flat_indices(node, node.in(1), extents, strides, positions);
  return t;
}

std::string reduction_of(NodeContext& node) {
  const std::string reduction = node.text("reduction", "none");
  const bool known = reduction == "none" || reduction == "add" || reduction == "mul" ||
                     reduction == "max" || reduction == "min";
  if (!known) node.fail("reduction", "none, add, mul, max or min", reduction);
  return reduction;
}

// y = rows with updates [m, rest...] at m indices, in the shape of input 0.
void scatter(NodeContext& node, const Term& rows, const Term& indices, const Term& updates) {
  refuse_part_of_batch(node);
  const Term y =
      node.make("ScatterRows", {rows, indices, updates}, {{"reduction", reduction_of(node)}});
  node.out(0, node.make("Reshape", {y}, {{"shape", node.shape(0)}}));
}

// The places in a row-major `x` of elements whose index along the axis is given, in the shape of
// the indices.
Term element_places(NodeContext& node, const Shape& x, const Term& indices, std::int64_t axis) {
  const auto at = static_cast<std::size_t>(axis);
  const Shape& shape = indices.type.shape;
  bool fits = shape.size() == x.size();
  for (std::size_t i = 0; fits && i < x.size(); ++i) fits = i == at || shape[i] <= x[i];
  if (!fits) node.fail("shape of the indices", "within " + to_string(x), to_string(shape));
  Ints positions = row_major(x).strides;
  const Ints stride{positions[at]};
  positions[at] = 0;
  Shape tuples = shape;
  tuples.push_back(1);
  return flat_indices(node, node.reshape(indices, tuples), {x[at]}, stride, positions);
}

}  // namespace

void gather_nd(NodeContext& node) {
  const Tuples t = read_tuples(node, node.integer("batch_dims", 0));
  node.out(0, node.make("Gather", {t.rows, t.indices}, {{"axis", std::int64_t{0}}}));
}

void scatter_nd(NodeContext& node) {
  const Tuples t = read_tuples(node, 0);
  Shape wanted(node.shape(1).begin(), node.shape(1).end() - 1);
  wanted.insert(wanted.end(), t.rest.begin(), t.rest.end());
  if (node.shape(2) != wanted) {
    node.fail("shape of the updates", to_string(wanted), to_string(node.shape(2)));
  }
  const std::int64_t count = element_count(t.indices.type.shape);
  Shape rows{count};
  rows.insert(rows.end(), t.rest.begin(), t.rest.end());
  scatter(node, t.rows, node.reshape(t.indices, {count}), node.reshape(node.in(2), rows));
}

void gather_elements(NodeContext& node) {
  const std::int64_t axis = node.axis(node.integer("axis", 0), node.rank(0));
  const Term places = element_places(node, node.shape(0), node.in(1), axis);
  const Term x = node.reshape(node.in(0), {element_count(node.shape(0))});
  node.out(0, node.make("Gather", {x, places}, {{"axis", std::int64_t{0}}}));
}

void scatter_elements(NodeContext& node) {
  const std::int64_t axis = node.axis(node.integer("axis", 0), node.rank(0));
  if (node.shape(2) != node.shape(1)) {
    node.fail("shape of the updates", to_string(node.shape(1)), to_string(node.shape(2)));
  }
  const std::int64_t count = element_count(node.shape(1));
  const Term places = element_places(node, node.shape(0), node.in(1), axis);
  scatter(node, node.reshape(node.in(0), {element_count(node.shape(0))}),
          node.reshape(places, {count}), node.reshape(node.in(2), {count}));
}

}  // namespace tandem::importer::operators
