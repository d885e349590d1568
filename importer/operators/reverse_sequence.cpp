// ReverseSequence: the first elements of each batch in the opposite order, as a lookup of rows.
#include <algorithm>

#include "importer/operators/counted.h"

namespace tandem::importer::operators {

void reverse_sequence(NodeContext& node) {
  const Shape& x = node.shape(0);
  const std::int64_t batch_axis = node.integer("batch_axis", 1);
  const std::int64_t time_axis = node.integer("time_axis", 0);
  if (x.size() < 2 || std::min(batch_axis, time_axis) != 0 ||
      std::max(batch_axis, time_axis) != 1) {
    node.fail("batch_axis and time_axis", "the first two axes, 0 and 1",
              std::to_string(batch_axis) + " and " + std::to_string(time_axis));
  }
  Ints swap(x.size());
  for (std::size_t i = 0; i < swap.size(); ++i) swap[i] = static_cast<std::int64_t>(i);
  if (time_axis == 0) std::swap(swap[0], swap[1]);
  const Term turned = node.transpose(node.in(0), swap);  // [batch, time, ...]
  const Shape shape = turned.type.shape;
  const std::int64_t batch = shape[0], time = shape[1];
  if (node.shape(1) != Shape{batch}) {
    node.fail("shape of the lengths", to_string(Shape{batch}), to_string(node.shape(1)));
  }
  // Step t of a sequence comes from step length - 1 - t; steps after its length stay.
  const Term lengths = node.reshape(node.cast(node.in(1), DType::int64), {batch, 1});
  const Term one = node.constant(HostTensor::from<std::int64_t>({}, {1}));
  const Term last = node.make("Sub", {lengths, one});
  const Term steps = counted(node, time, 1, 2);
  const Term from = node.make(
      "Where", {node.make("Less", {steps, lengths}), node.make("Sub", {last, steps}), steps});
  const Term places = node.make(
      "FlatIndices", {node.reshape(from, {batch, time, 1})},
      {{"extents", Ints{time}}, {"strides", Ints{1}}, {"position_strides", Ints{time, 0}}});
  Shape rows(shape.begin() + 1, shape.end());
  rows[0] = batch * time;
  const Term y =
      node.make("Gather", {node.reshape(turned, rows), places}, {{"axis", std::int64_t{0}}});
  node.out(0, node.transpose(y, swap));
}

}  // namespace tandem::importer::operators
