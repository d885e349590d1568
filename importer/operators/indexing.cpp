// Look-ups and updates by tuples of indices, running sums, largest elements, and what is made of
// places: OneHot, Hardmax, EyeLike.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "importer/operators/all.h"
#include "importer/operators/reductions.h"
#include "importer/tensor_data.h"

namespace tandem::importer {
namespace {

constexpr std::int64_t largest_count = std::int64_t{1} << 48;

std::int64_t product(const Shape& shape, std::size_t first, std::size_t last) {
  return element_count(Shape(shape.begin() + static_cast<std::ptrdiff_t>(first),
                             shape.begin() + static_cast<std::ptrdiff_t>(last)));
}

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
              fmt::format("{} that both have, and others behind them", batch_axes),
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
  Shape rows{product(x, 0, batch + width)};
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
    strides.push_back(product(x, batch + i + 1, batch + width));
  }
  for (std::size_t i = 0; i < batch; ++i) positions[i] = product(x, i + 1, batch + width);
  t.indices = flat_indices(node, node.in(1), extents, strides, positions);
  return t;
}

void gather_nd(NodeContext& node) {
  const Tuples t = read_tuples(node, node.integer("batch_dims", 0));
  node.out(0, node.make("Gather", {t.rows, t.indices}, {{"axis", std::int64_t{0}}}));
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
  const Term y =
      node.make("ScatterRows", {rows, indices, updates}, {{"reduction", reduction_of(node)}});
  node.out(0, node.make("Reshape", {y}, {{"shape", node.shape(0)}}));
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

void cum_sum(NodeContext& node) {
  const std::int64_t axis = node.axis(node.static_integer(1, "axis"), node.rank(0));
  node.out(0, node.make("CumSum", {node.in(0)},
                        {{"axis", axis},
                         {"exclusive", std::int64_t{node.flag("exclusive", false)}},
                         {"reverse", std::int64_t{node.flag("reverse", false)}}}));
}

// k: an attribute in version 1, then an input.
void top_k(NodeContext& node) {
  const std::int64_t axis = node.axis(node.integer("axis", -1), node.rank(0));
  const std::int64_t extent = node.shape(0)[static_cast<std::size_t>(axis)];
  const std::int64_t k = node.version() < 10 ? node.integer("k") : node.static_integer(1, "k");
  if (k < 0 || k > extent) node.fail("k", fmt::format("0 to {}", extent), std::to_string(k));
  node.flag("sorted", true);  // what has no order may as well be sorted
  const std::vector<Term> results = node.make_all(
      "TopK", {node.in(0)},
      {{"axis", axis}, {"k", k}, {"largest", std::int64_t{node.flag("largest", true)}}});
  node.out(0, results[0]);
  node.out(1, results[1]);
}

Attributes one_of_each(const Shape& x, std::int64_t axis, bool reversed) {
  const auto at = static_cast<std::size_t>(axis);
  Ints starts(x.size(), 0), steps(x.size(), 1);
  if (reversed && x[at] > 0) {
    starts[at] = x[at] - 1;
    steps[at] = -1;
  }
  return {{"starts", starts}, {"sizes", Ints(x)}, {"steps", steps}};
}

// The place of the largest element along the axis, which stays with extent 1; the first one, or
// the last one, where several are.
Term place_of_largest(NodeContext& node, const Term& x, std::int64_t axis, bool last) {
  const std::int64_t extent = x.type.shape[static_cast<std::size_t>(axis)];
  if (extent < 1) node.fail("the axis has no elements");
  const Attributes all{{"axis", axis}, {"k", std::int64_t{1}}, {"largest", std::int64_t{1}}};
  if (!last) return node.make_all("TopK", {x}, all)[1];
  const Term back = node.make("Slice", {x}, one_of_each(x.type.shape, axis, true));
  const Term place = node.make_all("TopK", {back}, all)[1];
  const Term end = node.constant(HostTensor::from<std::int64_t>({}, {extent - 1}));
  return node.make("Sub", {end, place});
}

void arg_extreme(NodeContext& node, bool smallest) {
  const std::int64_t axis = node.axis(node.integer("axis", 0), node.rank(0));
  const Term x = smallest ? reversed_order(node, node.in(0)) : node.in(0);
  const Term place = place_of_largest(node, x, axis, node.flag("select_last_index", false));
  Shape shape = place.type.shape;
  if (!node.flag("keepdims", true)) shape.erase(shape.begin() + axis);
  node.out(0, node.make("Reshape", {place}, {{"shape", shape}}));
}
void arg_max(NodeContext& node) { arg_extreme(node, false); }
void arg_min(NodeContext& node) { arg_extreme(node, true); }

// 0, 1, 2, ... along one of so many axes.
Term counted(NodeContext& node, std::int64_t count, std::size_t axis, std::size_t rank) {
  constexpr std::int64_t longest = 8 << 20;
  if (count > longest) node.fail("the axis is too long", "at most 2^23", std::to_string(count));
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  Shape shape(rank, 1);
  shape[axis] = count;
  return node.constant(HostTensor::from(shape, numbers));
}

// 1 at the first largest element. Before version 13 over all axes from `axis` on.
void hardmax(NodeContext& node) {
  const bool flattens = node.version() < 13;
  const std::int64_t axis = node.axis(node.integer("axis", flattens ? 1 : -1), node.rank(0));
  const Shape& shape = node.shape(0);
  Term x = node.in(0);
  if (flattens) {
    const auto cut = static_cast<std::size_t>(axis);
    x = node.reshape(x, {product(shape, 0, cut), product(shape, cut, shape.size())});
  }
  const std::int64_t own = flattens ? 1 : axis;
  const std::size_t rank = x.type.rank();
  const Term place = place_of_largest(node, x, own, false);
  const Term numbers = counted(node, x.type.shape[static_cast<std::size_t>(own)],
                               static_cast<std::size_t>(own), rank);
  const Term y = node.cast(node.make("Equal", {place, numbers}), node.dtype(0));
  node.out(0, node.make("Reshape", {y}, {{"shape", shape}}));
}

// values = [off, on]; on where the new axis' place is the index, which counts from the end where
// it is negative.
void one_hot(NodeContext& node) {
  const double given = node.static_number(1, "depth");
  if (!(given >= 1 && given <= static_cast<double>(largest_count))) {
    node.fail("depth", "1 or more", std::to_string(given));
  }
  const auto depth = static_cast<std::int64_t>(given);
  const std::int64_t axis = node.axis(node.integer("axis", -1), node.rank(0) + 1);
  if (node.shape(2) != Shape{2}) node.fail("values", "[off, on]", to_string(node.shape(2)));
  Shape shape = node.shape(0);
  shape.insert(shape.begin() + axis, 1);
  Term indices = node.reshape(node.cast(node.in(0), DType::int64), shape);
  const Term zero = node.constant(HostTensor::from<std::int64_t>({}, {0}));
  const Term all = node.constant(HostTensor::from<std::int64_t>({}, {depth}));
  indices = node.make(
      "Where", {node.make("Less", {indices, zero}), node.make("Add", {indices, all}), indices});
  const Term numbers = counted(node, depth, static_cast<std::size_t>(axis), shape.size());
  const auto value = [&](std::int64_t i) {
    const Term one = node.make("Slice", {node.in(2)},
                               {{"starts", Ints{i}}, {"sizes", Ints{1}}, {"steps", Ints{1}}});
    return node.reshape(one, {});
  };
  node.out(0, node.make("Where", {node.make("Equal", {indices, numbers}), value(1), value(0)}));
}

void eye_like(NodeContext& node) {
  if (node.rank(0) != 2) node.fail("rank of the input", "2", std::to_string(node.rank(0)));
  const std::int64_t type = node.integer("dtype", dtype_to_onnx(node.dtype(0)));
  const auto dtype = dtype_from_onnx(static_cast<std::int32_t>(type));
  if (!dtype || type != static_cast<std::int32_t>(type)) {
    node.unsupported("element type " + onnx_type_name(static_cast<std::int32_t>(type)) +
                     " is not supported");
  }
  const std::int64_t k =
      std::clamp<std::int64_t>(node.integer("k", 0), -largest_count, largest_count);
  const Shape& shape = node.shape(0);
  const Term rows = counted(node, shape[0], 0, 2), columns = counted(node, shape[1], 1, 2);
  const Term shift = node.constant(HostTensor::from<std::int64_t>({}, {k}));
  const Term diagonal = node.make("Equal", {node.make("Add", {rows, shift}), columns});
  node.out(0, node.make("Cast", {diagonal}, {{"to", std::string(name_of(*dtype))}}));
}

}  // namespace

void add_indexing(std::vector<Lowering>& list) {
  list.push_back({"GatherND", gather_nd});
  list.push_back({"GatherElements", gather_elements});
  list.push_back({"ScatterND", scatter_nd});
  list.push_back({"ScatterElements", scatter_elements});
  list.push_back({"Scatter", scatter_elements});
  list.push_back({"CumSum", cum_sum});
  list.push_back({"TopK", top_k});
  list.push_back({"ArgMax", arg_max});
  list.push_back({"ArgMin", arg_min});
  list.push_back({"Hardmax", hardmax});
  list.push_back({"OneHot", one_hot});
  list.push_back({"EyeLike", eye_like});
}

}  // namespace tandem::importer
