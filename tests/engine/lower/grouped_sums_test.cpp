// Which gradients of rows that are looked up by their places in groups of ids become sums over
// groups. Tests of operators and of sharded tables check the values.
#include <gtest/gtest.h>

#include "engine/graph/builder.h"
#include "engine/lower/placed_graph.h"
#include "engine/operators/collectives/collective.h"
#include "engine/operators/tables/rows.h"
#include "kernels/reference/reference_kernels.h"
#include "tests/harness/program_check.h"
#include "tests/harness/test_device.h"

namespace tandem::testing {
namespace {

constexpr std::int64_t bags = 4, length = 3, columns = 2, ranks = 2, group_count = bags * length;

/// Ids in groups, and gradients with respect to the rows at their places.
struct Groups {
  GraphBuilder b;
  std::vector<ValueId> of;
  ValueId dy, bag_dy;

  explicit Groups(const OperatorSet& operators) : b(operators) {
    b.set_scope({"table", Phase::backward, {}});
    of = b.node("UniqueIndices", {b.input("ids", {DType::int64, {bags, length}})},
                {{"rows", std::int64_t{50}}});
    dy = b.input("dy", {DType::float32, {bags, length, columns}});
    bag_dy = b.input("bag_dy", {DType::float32, {bags, columns}});
  }

  ValueId places() { return b.reshape(of[UniqueOutputs::inverse], {bags, length}); }
  ValueId gather_gradient(ValueId gradient, ValueId ids, std::int64_t rows = group_count) {
    return b.add_node("GatherGrad", {gradient, ids},
                      {{"axis", std::int64_t{0}}, {"shape", Ints{rows, columns}}});
  }
  ValueId bag_gradient(std::vector<ValueId> inputs) {
    return b.add_node("EmbeddingBagGrad", std::move(inputs),
                      {{"shape", Ints{group_count, columns}}});
  }
  /// Sends the rows to the ranks that own them.
  void send(ValueId rows) {
    const ValueId counts = b.filled(1, {DType::int32, {ranks}});
    b.output("sent " + std::to_string(rows.index),
             b.add_node(exchange_rows_name, {rows, counts, counts},
                        {{"ranks", ranks}, {"rows", group_count}}));
  }
};

class GroupedSumsTest : public ::testing::Test {
 protected:
  int sums(const Graph& graph, const Placement& placement, const std::vector<Device*>& devices) {
    const LowerContext context{operators, devices, options};
    const PlacedGraph placed = grouped_sums(placed_graph(graph, placement), context);
    verify(placed.graph);
    int count = 0;
    for (const Node& node : placed.graph.nodes) count += node.op->name == "RowsSum" ? 1 : 0;
    return count;
  }
  int sums(Groups& groups, Device& device) {
    const Graph graph = groups.b.finish();
    return sums(graph, on_one_device(graph), {&device});
  }

  const OperatorSet operators = all_operators();
  LowerOptions options;
  std::unique_ptr<Device> fast = make_test_device(reference_kernels_as_fast());
  Groups groups{operators};
};

TEST_F(GroupedSumsTest, OfLookupsAndBags) {
  groups.send(groups.gather_gradient(groups.dy, groups.places()));
  groups.send(groups.bag_gradient({groups.bag_dy, groups.places()}));
  const ValueId weights = groups.b.input("weights", {DType::float32, {bags, length}});
  groups.send(groups.bag_gradient({groups.bag_dy, groups.places(), weights}));
  EXPECT_EQ(sums(groups, *fast), 3);
}

// Rows that do not occur may hold anything, so no other node may read them.
TEST_F(GroupedSumsTest, NotWhereOthersReadThem) {
  const ValueId rows = groups.gather_gradient(groups.dy, groups.places());
  groups.send(rows);
  groups.b.output("squares", groups.b.add_node("SumOfSquares", {rows}));
  const ValueId result = groups.bag_gradient({groups.bag_dy, groups.places()});
  groups.send(result);
  groups.b.output("result", result);
  EXPECT_EQ(sums(groups, *fast), 0);
}

TEST_F(GroupedSumsTest, NotOfMoreRowsThanThereAreGroups) {
  groups.send(groups.gather_gradient(groups.dy, groups.places(), group_count + 1));
  EXPECT_EQ(sums(groups, *fast), 0);
}

TEST_F(GroupedSumsTest, NotOfSomeOfTheIds) {
  const ValueId some =
      groups.b.add_node("Slice", {groups.of[UniqueOutputs::inverse]},
                        {{"starts", Ints{0}}, {"sizes", Ints{bags}}, {"steps", Ints{1}}});
  groups.send(groups.gather_gradient(groups.bag_dy, some));
  EXPECT_EQ(sums(groups, *fast), 0);
}

TEST_F(GroupedSumsTest, NotOfOtherIds) {
  groups.send(
      groups.gather_gradient(groups.dy, groups.b.input("others", {DType::int32, {bags, length}})));
  groups.b.output("count", groups.of[UniqueOutputs::count]);
  EXPECT_EQ(sums(groups, *fast), 0);
}

TEST_F(GroupedSumsTest, NotWithoutAFastKernel) {
  const std::unique_ptr<Device> slow = make_test_device(reference_kernels());
  groups.send(groups.gather_gradient(groups.dy, groups.places()));
  EXPECT_EQ(sums(groups, *slow), 0);
}

TEST_F(GroupedSumsTest, NotOnAnotherDeviceThanTheGroups) {
  groups.send(groups.gather_gradient(groups.dy, groups.places()));
  const Graph graph = groups.b.finish();
  Placement placement = on_one_device(graph);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op->name == "GatherGrad") placement.nodes[n].device = 1;
  }
  const std::unique_ptr<Device> other = make_test_device(reference_kernels_as_fast());
  EXPECT_EQ(sums(graph, placement, {fast.get(), other.get()}), 0);
}

}  // namespace
}  // namespace tandem::testing
