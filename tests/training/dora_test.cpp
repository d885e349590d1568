// Weight-decomposed adapters against PEFT (tests/scripts/dora_expectations.py): results, gradients,
// start values, merged weights.
#include <gtest/gtest.h>

#include "engine/gradient/gradient.h"
#include "engine/passes/lora.h"
#include "tests/harness/operator_case.h"
#include "tests/training/tuned_network.h"

namespace tandem {
namespace {

using namespace tandem::testing;

HostTensor turned(const HostTensor& matrix) {
  const std::int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  HostTensor to(TensorType{DType::float32, {columns, rows}});
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const std::int64_t row = i / columns, column = i % columns;
    to.as<float>()[static_cast<std::size_t>(column * rows + row)] =
        matrix.as<float>()[static_cast<std::size_t>(i)];
  }
  return to;
}

/// A layer of the file. "in_out" is its Linear with the weight as MatMul reads it, [in, out].
class DoraLayer : public ::testing::TestWithParam<const char*> {
 protected:
  DoraLayer() {
    AdapterRule& rule = request_.rules.emplace_back();
    rule.at = "layer:weight";
    rule.rank = json_["rank"].get<std::int64_t>();
    rule.alpha = json_["alpha"].get<double>();
    rule.dora = true;
    request_.draw = [this](const std::string&, const TensorType&, double) { return stored("a"); };
  }

  bool is(const std::string& kind) const { return kind == GetParam(); }
  HostTensor plain(const std::string& key) const {
    return tensor_in(json_[is("conv") ? "conv" : "linear"][key]);
  }
  /// In the orientation of the weight.
  HostTensor stored(const std::string& key) const {
    return is("in_out") ? turned(plain(key)) : plain(key);
  }
  HostTensor magnitudes(const std::string& key) const {
    const HostTensor values = plain(key);
    return values.reshaped({values.type().elements()});
  }

  Graph layer() {
    GraphBuilder g(operators_);
    const ValueId x = g.input("x", plain("x").type());
    g.set_scope({"layer", Phase::forward, {}});
    const ValueId weight = parameter(g, "weight", stored("w"));
    const ValueId bias = parameter(g, "bias", plain("bias"));
    if (is("conv")) {
      g.output("y", g.add_node("Conv", {x, weight, bias},
                               {{"strides", Ints{1, 1}},
                                {"pads", Ints{1, 1, 1, 1}},
                                {"dilations", Ints{1, 1}}}));
    } else {
      const ValueId w = is("linear") ? g.transpose(weight, {1, 0}) : weight;
      g.output("y", g.add(g.matmul(x, w), bias));
    }
    return g.finish();
  }
  static ValueId parameter(GraphBuilder& g, const std::string& role, HostTensor start) {
    State state;
    state.name = "layer." + role;
    state.path = "layer:" + role;
    state.trainable = true;
    state.start = std::move(start);
    return g.state(std::move(state));
  }
  std::vector<std::pair<std::string, HostTensor>> feeds(const Graph& graph) const {
    std::vector<std::pair<std::string, HostTensor>> all{{"x", plain("x")}};
    for (const State& state : graph.states) all.emplace_back(state.name, state.start);
    return all;
  }
  /// With the values of the file for what trains.
  Graph adapted() {
    Graph graph = add_lora(layer(), operators_, request_);
    const std::string weight = "layer.weight";
    for (State& state : graph.states) {
      if (state.name == weight + "/lora_a") state.start = stored("a");
      if (state.name == weight + "/lora_b") state.start = stored("b");
      if (state.name == weight + "/lora_magnitude") state.start = magnitudes("magnitude");
    }
    return graph;
  }

  const nlohmann::json json_ = expectations("dora.json");
  const OperatorSet operators_ = all_operators();
  LoraRequest request_;
};

TEST_P(DoraLayer, ResultsAndGradientsArePefts) {
  GraphBuilder g(operators_, adapted());
  const ValueId y = g.graph().find_output("y")->value;
  const auto state = [&](const char* part) {
    return g.graph().find_state(std::string("layer.weight/lora_") + part)->initial;
  };
  const std::vector<ValueId> wanted{state("a"), state("b"), state("magnitude")};
  const GradientSeed seed{y, g.constant(plain("dy"))};
  std::vector<ValueId> values = add_gradients(g, {&seed, 1}, wanted);
  values.push_back(y);
  const Graph graph = g.finish();
  verify(graph);
  const std::vector<HostTensor> got = evaluate(graph, feeds(graph), values);
  EXPECT_EQ(compare(got[0], stored("da"), 1e-5), "");
  EXPECT_EQ(compare(got[1], stored("db"), 1e-5), "");
  EXPECT_EQ(compare(got[2], magnitudes("dmagnitude"), 1e-5), "");
  EXPECT_EQ(compare(got[3], plain("y"), 1e-5), "");
}

TEST_P(DoraLayer, MagnitudesStartAsNormsSoThatNothingChanges) {
  for (const double dropout : {0.0, 0.5}) {
    request_.rules[0].dropout = dropout;
    const Graph before = layer(), after = add_lora(before, operators_, request_);
    const State* magnitude = after.find_state("layer.weight/lora_magnitude");
    ASSERT_NE(magnitude, nullptr);
    EXPECT_TRUE(magnitude->trainable);
    EXPECT_EQ(compare(magnitude->start, magnitudes("start"), 1e-6), "");
    const auto want = evaluate(before, feeds(before), {before.outputs[0].value});
    const auto got = evaluate(after, feeds(after), {after.outputs[0].value});
    EXPECT_EQ(compare(got[0], want[0], 1e-5), "");
  }
}

TEST_P(DoraLayer, MergedWeightsArePefts) {
  const std::vector<AdaptedWeight> weights = adapted_weights(layer(), request_.rules);
  ASSERT_EQ(weights.size(), 1u);
  const HostTensor merged =
      merged_weight(weights[0], stored("w"), {stored("a"), stored("b"), magnitudes("magnitude")});
  EXPECT_EQ(compare(merged, stored("merged"), 1e-6), "");
}

INSTANTIATE_TEST_SUITE_P(Layers, DoraLayer, ::testing::Values("linear", "in_out", "conv"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tandem
