// OneHot and EyeLike: places compared with 0, 1, 2, ...
#include "importer/operators/counted.h"

#include <algorithm>
#include <numeric>

#include "importer/operators/element_type.h"

namespace tandem::importer::operators {

// 0, 1, 2, ... along one of that many axes.
Term counted(NodeContext& node, std::int64_t count, std::size_t axis, std::size_t rank) {
  constexpr std::int64_t longest = 8 << 20;
  if (count > longest) node.fail("the axis is too long", "at most 2^23", std::to_string(count));
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  Shape shape(rank, 1);
  shape[axis] = count;
  return node.constant(HostTensor::from(shape, numbers));
}

namespace {

constexpr std::int64_t largest_count = std::int64_t{1} << 48;

}  // namespace

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
  const DType dtype = number_type(node, node.integer("dtype", dtype_to_onnx(node.dtype(0))));
  const std::int64_t k =
      std::clamp<std::int64_t>(node.integer("k", 0), -largest_count, largest_count);
  const Shape& shape = node.shape(0);
  const Term rows = counted(node, shape[0], 0, 2), columns = counted(node, shape[1], 1, 2);
  const Term shift = node.constant(HostTensor::from<std::int64_t>({}, {k}));
  const Term diagonal = node.make("Equal", {node.make("Add", {rows, shift}), columns});
  node.out(0, node.make("Cast", {diagonal}, {{"to", std::string(name_of(dtype))}}));
}

}  // namespace tandem::importer::operators
