// Arithmetic on constants is done once, before the run, within the limit on results.
#include <gtest/gtest.h>

#include "engine/graph/builder.h"
#include "engine/passes/pass.h"
#include "tests/harness/operator_case.h"

namespace tandem {
namespace {

std::vector<HostTensor> evaluate_node(const Graph& graph, const Node& node,
                                      const std::vector<HostTensor>& inputs) {
  const KernelRequest request = testing::plain_request(graph, node);
  return testing::run_node(*choose_kernel(testing::reference_list(), request), graph, node, inputs);
}

class FoldTest : public ::testing::Test {
 protected:
  /// y = x + expand(c * c), after a node that nothing reads: ids differ between old and new graph.
  Graph graph() {
    GraphBuilder g(operators_);
    const ValueId x = g.input("x", {DType::float32, {2, 3}});
    g.reduce_sum(g.add(x, x), {0, 1}, false);
    const ValueId c = g.constant(HostTensor::from<float>({3}, {1, 2, 3}));
    const ValueId square = g.mul(c, c);
    g.output("y", g.add(x, g.expand(square, {2, 3})));
    return g.finish();
  }
  Graph folded(std::size_t most_bytes) {
    PassContext context{operators_, evaluate_node, {}, {}};
    context.most_constant_bytes = most_bytes;
    return fold_constants(graph(), context);
  }
  OperatorSet operators_ = all_operators();
};

TEST_F(FoldTest, ConstantsBecomeOne) {
  const Graph after = folded(64);
  ASSERT_EQ(after.nodes.size(), 1u) << to_text(after);
  const HostTensor x = HostTensor::from<float>({2, 3}, {1, 1, 1, 2, 2, 2});
  const auto y = testing::evaluate(after, {{"x", x}}, {after.outputs[0].value});
  const HostTensor expected = HostTensor::from<float>({2, 3}, {2, 5, 10, 3, 6, 11});
  EXPECT_EQ(testing::compare(y[0], expected, 1e-6), "");
}

TEST_F(FoldTest, LargeResultsStayComputed) {
  const Graph after = folded(12);
  ASSERT_EQ(after.nodes.size(), 2u) << to_text(after);
  EXPECT_EQ(after.nodes[0].op->name, "Expand");
}

}  // namespace
}  // namespace tandem
