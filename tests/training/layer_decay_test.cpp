// Learning rates by layers are those of MAE's util/lr_decay.py: decay^(depth + 1 - layer) with
// layer 0 for embeddings, i + 1 for block i and depth + 1 for what follows the blocks.
#include "engine/train/updates/layer_decay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/graph/builder.h"
#include "engine/train/graph/training_graph.h"
#include "tests/training/support.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LayerDecay : public ::testing::Test {
 protected:
  ValueId weight(GraphBuilder& g, const std::string& path, Shape shape = {4, 4}) {
    State state;
    state.path = path;
    state.name = path;
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, std::move(shape)});
    return g.state(std::move(state));
  }
  ValueId product(GraphBuilder& g, ValueId x, const std::string& path) {
    return g.add_node("MatMul", {x, weight(g, path)});
  }
  static std::vector<std::string> numbered(const Graph& graph) {
    const LayerNumbers numbers = number_layers(graph);
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < graph.states.size(); ++i)
      texts.push_back(graph.states[i].path + " " + std::to_string(numbers.of_state[i]));
    return texts;
  }

  testing::SmallEngine engine_;
};

TEST_F(LayerDecay, LayersFollowTheBlocks) {
  GraphBuilder g(engine_.operators);
  ValueId x = g.input("x", TensorType{DType::float32, {4, 4}});
  x = product(g, x, "patch:weight");
  // A position embedding goes through a node of its own before it meets the data.
  x = g.add_node("Add", {x, g.add_node("Neg", {weight(g, "position")})});
  x = product(g, x, "blocks.0.fc.0:weight");
  x = product(g, x, "blocks.0.fc.1:weight");
  x = g.add_node("Add", {x, weight(g, "between:bias")});
  const ValueId skipped = x;
  x = product(g, x, "blocks.1.fc:weight");
  x = g.add_node("Add", {x, skipped});
  x = product(g, x, "blocks.2.fc:weight");
  x = product(g, x, "norm:weight");
  g.output("y", product(g, x, "head:weight"));
  weight(g, "unused:weight");
  EXPECT_THAT(
      numbered(g.finish()),
      ElementsAre("patch:weight 0", "position 0", "blocks.0.fc.0:weight 1",
                  "blocks.0.fc.1:weight 1", "between:bias 1", "blocks.1.fc:weight 2",
                  "blocks.2.fc:weight 3", "norm:weight 4", "head:weight 4", "unused:weight -1"));
}

// Two towers next to each other are counted separately.
TEST_F(LayerDecay, BranchesDoNotAddUp) {
  GraphBuilder g(engine_.operators);
  const ValueId x = g.input("x", TensorType{DType::float32, {4, 4}});
  ValueId a = x, b = x;
  for (const char* i : {"0", "1"}) a = product(g, a, std::string("a.") + i + ":weight");
  for (const char* i : {"0", "2"}) b = product(g, b, std::string("b.") + i + ":weight");
  g.output("y", product(g, g.add_node("Add", {a, b}), "head:weight"));
  EXPECT_THAT(numbered(g.finish()), ElementsAre("a.0:weight 1", "a.1:weight 2", "b.0:weight 1",
                                                "b.2:weight 2", "head:weight 3"));
}

TrainingGraph training_graph(const OperatorSet& operators, const RunConfig& config,
                             const std::vector<std::string>& scopes) {
  Graph forward = testing::small_network(operators, 4, {8, 7, 6});
  for (State& state : forward.states) {
    const std::size_t layer = static_cast<std::size_t>(state.path[2] - '1');  // "fc1:weight"
    state.path = scopes.at(layer) + state.path.substr(3);
  }
  TrainingRequest request;
  request.config = &config;
  request.fields = {{"labels", {DType::int64, {4}}}};
  request.samples = {4, 4};
  return build_training_graph(operators, forward, request);
}

TEST_F(LayerDecay, RatesFallTowardsTheInput) {
  const RunConfig config =
      testing::small_config("/folder", {"optimizer.lr=0.1", "optimizer.layer_decay=0.75",
                                        "optimizer.groups=[{at='blocks.1:bias', lr=1.0}]"});
  const TrainingGraph made =
      training_graph(engine_.operators, config, {"embed", "blocks.0", "blocks.1", "head"});
  std::vector<double> rates;
  for (const LearningRate& rate : made.learning_rates) rates.push_back(rate.base);
  std::sort(rates.begin(), rates.end());
  ASSERT_EQ(rates.size(), 5u);
  const double expected[] = {0.1 * 0.421875, 0.1 * 0.5625, 0.1 * 0.75, 0.1, 0.75};
  for (std::size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(rates[i], expected[i], 1e-12);
  EXPECT_THAT(made.notes,
              ::testing::Contains(AllOf(HasSubstr("layer_decay 0.75: learning rates times 0.4219 "
                                                  "for embed:weight and 1 more; 0.5625 for "
                                                  "blocks.0:"),
                                        HasSubstr("; 1 for head:weight and 1 more"))));
}

TEST_F(LayerDecay, NetworksWithoutBlocksAreRefused) {
  const RunConfig config = testing::small_config("/folder", {"optimizer.layer_decay=0.5"});
  EXPECT_THAT(testing::error_text([&] {
                training_graph(engine_.operators, config, {"fc1", "fc2", "fc3", "fc4"});
              }),
              AllOf(HasSubstr("optimizer.layer_decay: the network has no blocks"),
                    HasSubstr("optimizer.groups")));
}

}  // namespace
}  // namespace tandem
