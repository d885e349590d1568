// Building, verifying and printing graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/builder.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

class GraphTest : public ::testing::Test {
 protected:
  OperatorSet operators_ = all_operators();
  GraphBuilder g_{operators_};

  std::string breach(const Graph& graph) {
    try {
      verify(graph);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  // y = relu(x w), with plain SGD on w
  void build_step() {
    const ValueId x = g_.input("x", {DType::float32, {4, 3}});
    State weight;
    weight.name = "w";
    weight.path = "fc:weight";
    weight.trainable = true;
    weight.start = HostTensor(TensorType{DType::float32, {3, 2}});
    const ValueId w = g_.state(weight);
    g_.set_scope({"fc"});
    const ValueId product = g_.matmul(x, w);
    g_.set_scope({"relu"});
    g_.output("y", g_.add_node("Relu", {product}));
    g_.set_scope({"fc", Phase::update});
    const ValueId next = g_.add_node(
        "GemmSgd", {w, g_.transpose(x, {1, 0}), product, g_.scalar(0.5, DType::float32)});
    g_.write_state(w, next);
  }
};

TEST_F(GraphTest, NamesPathsAndDefaults) {
  const ValueId x = g_.input("x", {DType::float32, {2, 3}});
  g_.set_scope({"block/act", Phase::backward, {"block/fc", "block/act"}});
  const ValueId y = g_.add_node("LeakyRelu", {x});
  const ValueId z = g_.add_node("Neg", {y});
  EXPECT_EQ(g_.graph().value(y).name, "block/act:0");
  EXPECT_EQ(g_.graph().value(z).name, "block/act:1");
  const Node& node = g_.graph().nodes[0];
  EXPECT_EQ(node.attributes.number("alpha"), 0.01);
  EXPECT_EQ(node.path, "block/act");
  EXPECT_EQ(node.phase, Phase::backward);
  EXPECT_EQ(node.origins, (std::vector<std::string>{"block/fc", "block/act"}));
  g_.set_scope({"other"});
  g_.neg(z);
  EXPECT_EQ(g_.graph().nodes[2].origins, std::vector<std::string>{"other"});

  g_.rename(z, "x");
  EXPECT_EQ(g_.graph().value(z).name, "x_1");
  EXPECT_EQ(g_.graph().find_value("x_1"), z);
  EXPECT_FALSE(g_.graph().find_value("block/act:1"));
  EXPECT_EQ(breach(g_.graph()), "");
}

TEST_F(GraphTest, GoesOnWithAGraph) {
  build_step();
  const Graph before = g_.graph();
  GraphBuilder more(operators_, before);
  more.set_scope({"fc"});
  const ValueId y = more.neg(more.graph().find_output("y")->value);
  EXPECT_EQ(breach(more.graph()), "") << more.graph().value(y).name;
}

TEST_F(GraphTest, ShortForms) {
  const ValueId x = g_.input("x", {DType::float32, {2, 3, 4}});
  EXPECT_EQ(g_.reshape(x, {2, 3, 4}), x);
  EXPECT_EQ(g_.cast(x, DType::float32), x);
  EXPECT_EQ(g_.expand(x, {2, 3, 4}), x);
  EXPECT_EQ(g_.transpose(x, {0, 1, 2}), x);
  EXPECT_EQ(g_.reduce_sum(x, {}, false), x);
  EXPECT_EQ(g_.sum_to(x, {2, 3, 4}), x);
  EXPECT_TRUE(g_.graph().nodes.empty());
  EXPECT_EQ(g_.shape(g_.sum_to(x, {3, 1})), (Shape{3, 1}));
  EXPECT_EQ(g_.shape(g_.sum_to(x, {})), Shape{});
  EXPECT_EQ(g_.shape(g_.transpose_last_two(x)), (Shape{2, 4, 3}));
  EXPECT_EQ(g_.dtype(g_.cast(x, DType::int64)), DType::int64);
  const ValueId two = g_.scalar(2, DType::int64);
  EXPECT_EQ(g_.graph().value(two).constant->number(0), 2);
}

TEST_F(GraphTest, Readers) {
  const ValueId x = g_.input("x", {DType::float32, {2}});
  const ValueId y = g_.mul(x, x);
  g_.add(x, y);
  const auto readers = readers_of(g_.graph());
  EXPECT_EQ(readers[x.index], (std::vector<NodeId>{{0}, {1}}));
  EXPECT_EQ(readers[y.index], (std::vector<NodeId>{{1}}));
}

TEST_F(GraphTest, Text) {
  build_step();
  const std::string text = to_text(g_.graph());
  EXPECT_THAT(text, HasSubstr("input %x: float32[4, 3]\n"));
  EXPECT_THAT(text, HasSubstr("state %w: float32[3, 2] -> %fc:2 trainable  # fc:weight\n"));
  EXPECT_THAT(text, HasSubstr("constant %constant: float32[] = 0.5\n"));
  EXPECT_THAT(text, HasSubstr("%fc:0: float32[4, 2] = MatMul(%x, %w)  # fc\n"));
  EXPECT_THAT(text, HasSubstr("%fc:1: float32[3, 4] = Transpose(%x) {perm=[1, 0]}  # fc\n"));
  EXPECT_THAT(text, HasSubstr("output y = %relu:0\n"));
}

TEST_F(GraphTest, VerifyAcceptsAStep) {
  build_step();
  EXPECT_EQ(breach(g_.graph()), "");
}

TEST_F(GraphTest, VerifyRejects) {
  build_step();
  const Graph good = g_.graph();
  const auto rejects = [&](auto change, const std::string& reason) {
    Graph bad = good;
    change(bad);
    EXPECT_THAT(breach(bad), HasSubstr(reason));
  };
  rejects([](Graph& b) { b.nodes[0].inputs[0].index = 99; },
          "fc: the graph is not well formed: input id out of range");
  rejects([](Graph& b) { b.nodes[0].inputs[0] = b.nodes[1].outputs[0]; }, "before it is made");
  rejects([](Graph& b) { b.nodes[0].inputs.pop_back(); }, "number of inputs of MatMul");
  rejects([](Graph& b) { b.nodes[0].inputs[1] = {}; }, "input 'b' is missing");
  rejects([](Graph& b) { b.nodes[0].outputs.clear(); }, "number of outputs of MatMul");
  rejects([](Graph& b) { b.nodes[1].outputs = b.nodes[0].outputs; }, "names another producer");
  rejects([](Graph& b) { b.nodes[2].attributes = {}; }, "attribute 'perm' is missing");
  rejects([](Graph& b) { b.nodes[2].attributes.set("perm", 1.0); },
          "attribute 'perm' has another type");
  rejects([](Graph& b) { b.nodes[0].attributes.set("axis", 1.0); },
          "attribute 'axis' is not one of MatMul");
  rejects([](Graph& b) { b.value(b.nodes[1].outputs[0]).type.shape = {9}; },
          "expected float32[4, 2], got float32[9]");
  rejects([](Graph& b) { b.values[1].name = b.values[0].name; }, "two values have this name");
  rejects([](Graph& b) { b.values.push_back({.name = "orphan"}); },
          "a computed value has no producer");
  rejects([](Graph& b) { b.states.push_back(b.states[0]); }, "two states have this name");
  rejects([](Graph& b) { b.states[0].final = b.nodes[2].outputs[0]; }, "type of the final value");
  rejects([](Graph& b) { b.states[0].start = HostTensor(); },
          "type of the value before the first step");
  rejects([](Graph& b) { b.inputs.push_back(b.inputs[0]); }, "two inputs have this name");
  rejects([](Graph& b) { b.outputs.push_back(b.outputs[0]); }, "two outputs have this name");
}

TEST_F(GraphTest, VerifyRejectsReadersAfterTheWriter) {
  build_step();
  const ValueId w = g_.graph().states[0].initial;
  g_.set_scope({"late"});
  g_.neg(w);
  EXPECT_THAT(
      breach(g_.graph()),
      HasSubstr("late: the graph is not well formed: reads state 'w' after it was overwritten"));
}

TEST_F(GraphTest, VerifyRejectsAFinalValueElsewhere) {
  State state;
  state.name = "s";
  state.start = HostTensor(TensorType{DType::float32, {2}});
  const ValueId s = g_.state(state);
  g_.write_state(s, g_.neg(s));
  EXPECT_THAT(breach(g_.graph()), HasSubstr("not written into the state's storage"));
}

TEST_F(GraphTest, FusedBodies) {
  const auto body = [&] {
    GraphBuilder b(operators_);
    const ValueId x = b.input("x", {DType::float32, {4}});
    b.output("y", b.add_node("Exp", {b.neg(x)}));
    return std::make_shared<const Graph>(b.finish());
  }();
  const ValueId x = g_.input("x", {DType::float32, {4}});
  g_.set_scope({"fused"});
  g_.node("Fused", {x}, {}, body);
  EXPECT_EQ(breach(g_.graph()), "");
  EXPECT_THAT(to_text(g_.graph()),
              HasSubstr("%fused:0: float32[4] = Fused(%x)  # fused\n  input %x"));
  const ValueId other = g_.input("other", {DType::float32, {5}});
  EXPECT_THROW(g_.node("Fused", {other}, {}, body), Error);
}

}  // namespace
}  // namespace tandem
