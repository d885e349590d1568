// TensorScatter: a piece of each sample's cache is replaced, from a place of
// its own on.
#include <numeric>

#include "importer/operators/float8.h"

namespace tandem::importer::operators {

// Places b L + (start[b] + s) in rows of the cache [B L, ...], with the axis of length L moved to
// just after the first one. What would lie past the end becomes the place B L, which the kernel
// refuses.
void tensor_scatter(NodeContext& node) {
  const Shape& cache = node.shape(0);
  const Shape& update = node.shape(1);
  const std::int64_t rank = node.rank(0), axis = node.axis(node.integer("axis", -2), rank);
  Shape expected = cache;
  if (node.rank(1) == rank && axis > 0) {
    expected[static_cast<std::size_t>(axis)] = update[static_cast<std::size_t>(axis)];
  }
  if (axis < 1 || update != expected) {
    node.fail("cache and update", "equal shapes except for one axis after the first",
              to_string(cache) + " and " + to_string(update));
  }
  const std::string mode = node.text("mode", "linear");
  if (mode != "linear" && mode != "circular") node.fail("mode", "linear or circular", mode);
  const std::int64_t batch = cache[0], length = cache[static_cast<std::size_t>(axis)];
  const std::int64_t count = update[static_cast<std::size_t>(axis)];
  if (count > length) node.fail("update", "at most as long as the cache", to_string(update));
  Ints front(static_cast<std::size_t>(rank));
  std::iota(front.begin(), front.end(), std::int64_t{0});
  front.erase(front.begin() + axis);
  front.insert(front.begin() + 1, axis);
  Ints back(static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < back.size(); ++i) {
    back[static_cast<std::size_t>(front[i])] = static_cast<std::int64_t>(i);
  }
  const auto rows = [&](const Term& x) {
    const Term moved = node.transpose(as_bytes(node, x), front);
    Shape shape(moved.type.shape.begin() + 1, moved.type.shape.end());
    shape[0] *= batch;
    return node.reshape(moved, shape);
  };
  const auto whole = [&](const Shape& shape, std::int64_t step) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(element_count(shape)));
    std::iota(values.begin(), values.end(), std::int64_t{0});
    for (std::int64_t& value : values) value *= step;
    return node.constant(HostTensor::from(shape, values));
  };
  const auto number = [&](std::int64_t value) {
    return node.constant(HostTensor::from<std::int64_t>({}, {value}));
  };
  Term places = node.expand(whole({1, count}, 1), {batch, count});
  if (node.has(2)) {
    if (node.shape(2) != Shape{batch}) {
      node.fail("write_indices", to_string(Shape{batch}), to_string(node.shape(2)));
    }
    places = node.make("Add", {places, node.reshape(node.in(2), {batch, 1})});
    if (mode == "circular") places = node.make("Mod", {places, number(length)});
  }
  const Term in_all = node.make("Add", {places, whole({batch, 1}, length)});
  const Term inside = node.make("And", {node.make("GreaterOrEqual", {places, number(0)}),
                                        node.make("Less", {places, number(length)})});
  const Term rows_to = node.make("Where", {inside, in_all, number(batch * length)});
  const Term y = node.make(
      "ScatterRows", {rows(node.in(0)), node.reshape(rows_to, {batch * count}), rows(node.in(1))});
  Shape moved = cache;
  moved.erase(moved.begin() + axis);
  moved.insert(moved.begin() + 1, length);
  node.out(0, of_bytes(node, node.transpose(node.reshape(y, moved), back), node.dtype(0)));
}

}  // namespace tandem::importer::operators
