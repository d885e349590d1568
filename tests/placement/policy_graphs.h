// The graphs that cases of tests/expected/policy_file name.
#pragma once

#include <string>

#include "engine/graph/graph.h"

namespace tandem::testing {

///   ""                 shared_graph()
///   lookup COLUMNS     ids [8] -> embed.Gather (embed:weight [100, COLUMNS]) -> rows; head.Add and
///                      tail.Mul read them
///   tied lookup        that with 16 columns; tied.MatMul reads the table, too
///   tied head          shared_graph(), and a product with its table, transposed
///   frozen head        shared_graph(), whose head:weight is not trained
///   shared weight      shared_graph(), whose layers.1.MatMul reads layers.0:weight, too
///   cubes              cubes.Gather (cubes:weight [6, 2, 4])
///   attention          block.q, k and v of 4 heads, block.attention, block.o with a bias, a norm,
///                      and the product up
///   joined attention   that with block.qkv in place of the three
/// Throws std::runtime_error for other names.
const Graph& policy_graph(const std::string& name);

}  // namespace tandem::testing
