// A graph of lookups, for tests of decisions that depend on ids.
#pragma once

#include "api/model/engine.h"
#include "engine/graph/builder.h"

namespace tandem::testing {

/// Lookups of `ids` [4, 2] in `table` [20, width], by one operator or one per column; `of_floats`:
/// ids that only a computation yields.
inline Graph lookup_graph(std::int64_t width, bool by_column = false, bool of_floats = false) {
  static const OperatorSet operators = all_operators();
  GraphBuilder b(operators);
  State table;
  table.name = "table";
  table.path = "table";
  table.trainable = true;
  table.start = HostTensor(TensorType{DType::float32, {20, width}});
  const ValueId weights = b.state(std::move(table));
  ValueId indices = b.input("ids", {of_floats ? DType::float32 : DType::int64, {4, 2}});
  if (of_floats) {
    State scale;
    scale.name = "scale";
    scale.start = HostTensor(TensorType{DType::float32, {2}});
    indices = b.mul(indices, b.state(std::move(scale)));
    indices = b.add_node("Cast", {indices}, {{"to", std::string("int64")}});
  }
  for (std::int64_t column = 0; column < (by_column ? 2 : 1); ++column) {
    ValueId chosen = indices;
    if (by_column) {
      chosen =
          b.add_node("Gather", {indices, b.constant(HostTensor::from<std::int64_t>({}, {column}))},
                     {{"axis", std::int64_t{1}}});
    }
    b.output("rows" + std::to_string(column), b.add_node("Gather", {weights, chosen}));
  }
  return b.finish();
}

}  // namespace tandem::testing
