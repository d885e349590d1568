// What Attention becomes: the engine's operator if it means the same, else its parts.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "tests/importer/support.h"

namespace tandem::testing {
namespace {

bool has_mask(const Node& attention) { return attention.inputs.size() > 3 && attention.inputs[3]; }

/// q [1, 4, 3, 2] over keys with two heads.
struct Model {
  ModelMaker m{25};
  onnx::NodeProto* node = nullptr;

  explicit Model(const std::string& mask = "", std::int64_t keys = 3) {
    m.input("q", {1, 4, 3, 2}).input("k", {1, 2, keys, 2}).input("v", {1, 2, keys, 2}).output("y");
    node = &m.node("Attention", {"q", "k", "v", mask}, {"y"});
  }
  Graph imported() const {
    return import_graph(m.file(), engine_operators(), with_evaluator()).graph;
  }
};

TEST(Attention, OfSharedHeadsIsOneOperator) {
  Model model;
  set(*model.node, "is_causal", std::int64_t{1});
  const Graph graph = model.imported();
  ASSERT_EQ(count_nodes(graph, "Attention"), 1) << to_text(graph);
  EXPECT_EQ(count_nodes(graph, "Softmax"), 0);
  const auto node = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [](const Node& n) { return n.op->name == "Attention"; });
  EXPECT_EQ(node->attributes.integer("causal"), 1);
  EXPECT_FALSE(has_mask(*node));
}

// The engine counts causal keys from the last one, ONNX from the first.
TEST(Attention, CausalOverMoreKeysIsAMask) {
  Model model("", 5);
  set(*model.node, "is_causal", std::int64_t{1});
  const Graph graph = model.imported();
  ASSERT_EQ(count_nodes(graph, "Attention"), 1) << to_text(graph);
  const auto node = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [](const Node& n) { return n.op->name == "Attention"; });
  EXPECT_EQ(node->attributes.integer("causal"), 0);
  EXPECT_TRUE(has_mask(*node));
}

// A position bias that is trained: the engine's Attention would give it no gradient.
TEST(Attention, WithALearnedMaskHasItsGradient) {
  Model model("bias");
  model.m.weight("bias", {3, 3});
  GraphBuilder builder(engine_operators(), model.imported());
  EXPECT_EQ(count_nodes(builder.graph(), "Attention"), 0);
  const ValueId y = builder.graph().outputs[0].value;
  const State* bias = builder.graph().find_state("bias");
  ASSERT_NE(bias, nullptr);
  const ValueId wanted = bias->initial;
  const ValueId dy = builder.filled(1, builder.type(y));
  const std::vector<GradientSeed> seeds{{y, dy}};
  EXPECT_TRUE(add_gradients(builder, seeds, std::vector<ValueId>{wanted})[0]);
}

}  // namespace
}  // namespace tandem::testing
