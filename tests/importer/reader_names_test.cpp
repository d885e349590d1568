// Parameters named after what reads them, in files as exporters write them: made-up names, tied
// weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/parameter_names.h"
#include "engine/passes/lora.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace tandem::testing;

onnx::NodeProto& named(onnx::NodeProto& node, const std::string& name) {
  node.set_name(name);
  return node;
}

/// As torch.onnx.export(dynamo=True) writes the modules around a node.
onnx::NodeProto& scoped(onnx::NodeProto& node, const std::string& scopes) {
  auto& entry = *node.add_metadata_props();
  entry.set_key("pkg.torch.onnx.name_scopes");
  entry.set_value(scopes);
  return node;
}

/// The parameters that a selector names.
std::vector<std::string> meant(const Graph& graph, const std::string& selector) {
  const ParameterNames names(graph);
  std::vector<std::string> found;
  for (const State& state : graph.states) {
    if (state.kind == StateKind::parameter && names.covers(Selector(selector), state))
      found.push_back(state.name);
  }
  return found;
}

Graph imported(const ModelMaker& m) {
  return import_graph(m.file(), engine_operators(), with_evaluator()).graph;
}

/// Weights that the classic exporter has transposed and renamed (do_constant_folding).
ModelMaker folded_attention() {
  ModelMaker m;
  m.input("x", {2, 4}).output("y").weight("layers.0.attn.q_proj.bias", {4});
  m.weight("onnx::MatMul_12", {4, 4}).weight("onnx::MatMul_13", {4, 4});
  m.weight("onnx::MatMul_14", {4, 4}).weight("onnx::Add_15", {1, 4});
  named(m.node("MatMul", {"x", "onnx::MatMul_12"}, {"a"}), "/layers.0/attn/q_proj/MatMul");
  named(m.node("Add", {"layers.0.attn.q_proj.bias", "a"}, {"q"}), "/layers.0/attn/q_proj/Add");
  named(m.node("MatMul", {"q", "onnx::MatMul_13"}, {"v"}), "/layers.0/attn/v_proj/MatMul");
  named(m.node("Add", {"v", "onnx::Add_15"}, {"w"}), "/layers.0/attn/v_proj/Add");
  named(m.node("MatMul", {"w", "onnx::MatMul_14"}, {"y"}), "/layers.0/mlp/fc/MatMul");
  return m;
}

TEST(ReaderNames, AWeightThatLostItsNameIsThatOfTheModuleWhichReadsIt) {
  const Graph graph = imported(folded_attention());
  EXPECT_THAT(meant(graph, "**.{q_proj,v_proj}:weight"),
              ElementsAre("onnx::MatMul_12", "onnx::MatMul_13"));
  EXPECT_THAT(meant(graph, "layers.0.mlp.fc:weight"), ElementsAre("onnx::MatMul_14"));
  EXPECT_THAT(meant(graph, "**:bias"), ElementsAre("layers.0.attn.q_proj.bias", "onnx::Add_15"));
  EXPECT_THAT(meant(graph, "**.q_proj"),
              ElementsAre("layers.0.attn.q_proj.bias", "onnx::MatMul_12"));
  EXPECT_THAT(meant(graph, "layers.0.attn.**"),
              ElementsAre("layers.0.attn.q_proj.bias", "onnx::MatMul_12", "onnx::MatMul_13",
                          "onnx::Add_15"));
  EXPECT_THAT(meant(graph, "**.v_proj.MatMul:weight"), ElementsAre("onnx::MatMul_13"));
  EXPECT_THAT(meant(graph, "re:'.*[qv]_proj:weight'"),
              ElementsAre("onnx::MatMul_12", "onnx::MatMul_13"));
}

TEST(ReaderNames, RawNamesAndPathsGoOnAsTheyWere) {
  const Graph graph = imported(folded_attention());
  EXPECT_THAT(meant(graph, "onnx::MatMul_12"), ElementsAre("onnx::MatMul_12"));
  EXPECT_THAT(meant(graph, "onnx::MatMul_*"),
              ElementsAre("onnx::MatMul_12", "onnx::MatMul_13", "onnx::MatMul_14"));
  EXPECT_THAT(meant(graph, "layers.0.attn.q_proj:bias"), ElementsAre("layers.0.attn.q_proj.bias"));
  EXPECT_THAT(meant(graph, "layers.0.attn:weight"), IsEmpty());
}

// onnxscript's optimizer folds a Transpose into "val_17"; the node keeps its scopes.
TEST(ReaderNames, OfTheExporterOverTorchExport) {
  ModelMaker m;
  m.input("x", {2, 4}).output("y").weight("val_17", {4, 3}).weight("val_9", {3, 3});
  scoped(m.node("MatMul", {"x", "val_17"}, {"a"}), "['', 'model', 'model.head', 'linear']");
  set(scoped(m.node("Transpose", {"val_9"}, {"t"}), "['', 'model', 'model.last', 't']"), "perm",
      std::vector<std::int64_t>{1, 0});
  scoped(m.node("MatMul", {"a", "t"}, {"y"}), "['', 'model', 'model.last', 'linear_1']");
  const Graph graph = imported(m);
  EXPECT_THAT(meant(graph, "model.head:weight"), ElementsAre("val_17"));
  EXPECT_THAT(meant(graph, "model.{head,last}:weight"), ElementsAre("val_17", "val_9"));
}

TEST(ReaderNames, ConvolutionsTablesAndNormalizations) {
  ModelMaker m;
  m.input("x", {2, 3, 5, 5}).input("ids", {2}, onnx::TensorProto::INT64).output("y").output("z");
  m.weight("onnx::Conv_1", {4, 3, 3, 3}).weight("onnx::Conv_2", {4});
  m.weight("onnx::Gather_3", {7, 2}).weight("onnx::LayerNormalization_4", {2});
  m.weight("onnx::LayerNormalization_5", {2});
  named(m.node("Conv", {"x", "onnx::Conv_1", "onnx::Conv_2"}, {"y"}), "/stem/conv/Conv");
  named(m.node("Gather", {"onnx::Gather_3", "ids"}, {"e"}), "/emb/Gather");
  named(m.node("LayerNormalization",
               {"e", "onnx::LayerNormalization_4", "onnx::LayerNormalization_5"}, {"z"}),
        "/norm/LayerNormalization");
  const Graph graph = imported(m);
  EXPECT_THAT(meant(graph, "stem.conv:weight"), ElementsAre("onnx::Conv_1"));
  EXPECT_THAT(meant(graph, "stem.conv:bias"), ElementsAre("onnx::Conv_2"));
  EXPECT_THAT(meant(graph, "emb:weight"), ElementsAre("onnx::Gather_3"));
  EXPECT_THAT(meant(graph, "norm:weight"), ElementsAre("onnx::LayerNormalization_4"));
  EXPECT_THAT(meant(graph, "norm:bias"), ElementsAre("onnx::LayerNormalization_5"));
}

TEST(ReaderNames, AnLstmsAreWeightsAndBiasOfItsModule) {
  ModelMaker m;
  m.input("x", {3, 2, 4}).output("y");
  m.weight("onnx::LSTM_1", {1, 8, 4}).weight("onnx::LSTM_2", {1, 8, 2});
  m.weight("onnx::LSTM_3", {1, 16});
  set(named(m.node("LSTM", {"x", "onnx::LSTM_1", "onnx::LSTM_2", "onnx::LSTM_3"}, {"y"}),
            "/rnn/LSTM"),
      "hidden_size", std::int64_t{2});
  const Graph graph = imported(m);
  EXPECT_THAT(meant(graph, "rnn:weight"), ElementsAre("onnx::LSTM_1", "onnx::LSTM_2"));
  EXPECT_THAT(meant(graph, "rnn:bias"), ElementsAre("onnx::LSTM_3"));
}

/// A table that an output layer reads too, under its own or under a made-up name.
ModelMaker tied(const std::string& table) {
  ModelMaker m;
  m.input("ids", {2}, onnx::TensorProto::INT64).output("y").weight(table, {5, 4});
  m.weight("lm_head.bias", {5});
  named(m.node("Gather", {table, "ids"}, {"e"}), "/wte/Gather");
  set(named(m.node("Transpose", {table}, {"t"}), "/lm_head/Transpose"), "perm",
      std::vector<std::int64_t>{1, 0});
  named(m.node("MatMul", {"e", "t"}, {"p"}), "/lm_head/MatMul");
  named(m.node("Add", {"p", "lm_head.bias"}, {"y"}), "/lm_head/Add");
  return m;
}

TEST(ReaderNames, ATiedWeightIsMeantThroughEachReader) {
  const Graph graph = imported(tied("wte.weight"));
  EXPECT_THAT(meant(graph, "wte:weight"), ElementsAre("wte.weight"));
  EXPECT_THAT(meant(graph, "lm_head:weight"), ElementsAre("wte.weight"));
  EXPECT_THAT(meant(graph, "lm_head"), ElementsAre("lm_head.bias"));  // as before
  const Graph unnamed = imported(tied("onnx::Gather_7"));
  EXPECT_THAT(meant(unnamed, "wte:weight"), ElementsAre("onnx::Gather_7"));
  EXPECT_THAT(meant(unnamed, "lm_head"), ElementsAre("onnx::Gather_7", "lm_head.bias"));
}

TEST(ReaderNames, TheNameOfAnotherParameterStaysThatOnes) {
  ModelMaker m;  // fc reads the weight that is named after proj, and has one of its own
  m.input("x", {2, 4}).output("y").weight("proj.weight", {4, 4}).weight("fc.weight", {4, 4});
  named(m.node("MatMul", {"x", "proj.weight"}, {"a"}), "/fc/MatMul");
  named(m.node("MatMul", {"a", "fc.weight"}, {"y"}), "/fc/MatMul_1");
  EXPECT_THAT(meant(imported(m), "fc:weight"), ElementsAre("fc.weight"));
}

TEST(ReaderNames, WhatParentsReadOfTheirPartsHasNoOtherName) {
  ModelMaker m;  // MultiheadAttention reads out_proj's weight itself
  m.input("x", {2, 4}).output("y").weight("attn.in_proj_weight", {4, 4});
  m.weight("attn.out_proj.weight", {4, 4});
  named(m.node("MatMul", {"x", "attn.in_proj_weight"}, {"a"}), "/attn/MatMul");
  named(m.node("MatMul", {"a", "attn.out_proj.weight"}, {"y"}), "/attn/MatMul_1");
  EXPECT_THAT(meant(imported(m), "attn:weight"), IsEmpty());
  EXPECT_THAT(meant(imported(m), "attn"), ElementsAre("attn.in_proj_weight"));
}

TEST(ReaderNames, NodesWithoutAModuleAreNamedThemselves) {
  ModelMaker m;
  m.input("x", {2, 4}).output("y").weight("onnx::MatMul_1", {4, 4}).weight("W", {4, 4});
  named(m.node("MatMul", {"x", "onnx::MatMul_1"}, {"a"}), "MatMul_5");
  named(m.node("MatMul", {"a", "W"}, {"y"}), "dense/MatMul");  // TensorFlow
  const Graph graph = imported(m);
  EXPECT_THAT(meant(graph, "MatMul_5:weight"), ElementsAre("onnx::MatMul_1"));
  EXPECT_THAT(meant(graph, "dense:weight"), ElementsAre("W"));
}

TEST(ReaderNames, WhatHelpsWhereNothingIsMeant) {
  const Graph graph = imported(tied("wte.weight")), folded = imported(folded_attention());
  EXPECT_THAT(ParameterNames(folded).no_match_fix("layers.0.attn.k_proj:weight", folded),
              HasSubstr("layers.0.attn.q_proj:weight"));
  EXPECT_THAT(ParameterNames(graph).no_match_fix("lm_head.MatMul", graph),
              HasSubstr("name it \"lm_head:weight\" or \"wte:weight\""));
  for (const char* const selector : {"q_proj", "**.q_proj.weight", "**.q_prj:weight", "*.q_proj"}) {
    EXPECT_THAT(ParameterNames(folded).no_match_fix(selector, folded),
                HasSubstr("did you mean \"**.q_proj:weight\"?"))
        << selector;
  }
  EXPECT_THAT(ParameterNames(folded).no_match_fix("**.lm_head:weight", folded),
              HasSubstr("--parameters"));
}

TEST(ReaderNames, AdaptersAreThoseOfTheModule) {
  const Graph graph = imported(folded_attention());
  LoraRequest request;
  request.rules = {{.at = "**.{q_proj,v_proj}:weight", .rank = 2, .alpha = 4}};
  request.draw = [](const std::string&, const TensorType& type, double) {
    return HostTensor(type);
  };
  const Graph adapted = add_lora(graph, engine_operators(), request);
  EXPECT_THAT(meant(adapted, "**.q_proj:weight/lora_a"), ElementsAre("onnx::MatMul_12/lora_a"));
  EXPECT_THAT(meant(adapted, "**.q_proj:weight"), ElementsAre("onnx::MatMul_12"));
}

// parameters.shape decides before nodes are lowered.
TEST(ReaderNames, TablesWithOtherRowsToo) {
  ModelMaker m;
  m.input("ids", {2}, onnx::TensorProto::INT64).output("y").weight("onnx::Gather_3", {1, 4});
  named(m.node("Gather", {"onnx::Gather_3", "ids"}, {"y"}), "/encoder/emb/Gather");
  ImportOptions options = with_evaluator();
  options.rows = {{.at = "**.emb:weight", .rows = 9}};
  const ImportResult result = import_graph(m.file(), engine_operators(), options);
  EXPECT_EQ(result.graph.find_state("onnx::Gather_3")->start.shape(), (Shape{9, 4}));
}

}  // namespace
}  // namespace tandem
