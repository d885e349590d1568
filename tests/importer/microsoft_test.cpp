// Operators of com.microsoft, which onnxruntime writes into models that it optimised: results are
// onnxruntime's (tests/scripts/microsoft_expectations.py).
#include <gtest/gtest.h>

#include "tests/importer/domain_cases.h"

namespace tandem::testing {
namespace {

const DomainCases microsoft_cases{"microsoft_operators.json", "com.microsoft", 1};

TEST(Microsoft, OperatorsGiveOnnxruntimesResults) { expect_onnxruntimes_results(microsoft_cases); }

TEST(Microsoft, EachOperatorHasACase) { EXPECT_EQ(operators_without_case(microsoft_cases), ""); }

std::string error_of_microsoft_node(const std::function<void(ModelMaker&)>& make) {
  return error_of_nodes(microsoft_cases.domain, microsoft_cases.version, make);
}

// An attribute that import does not know changes the node's meaning, so it is refused by name.
TEST(Microsoft, WhatIsNotReadIsRefused) {
  const std::string attribute = error_of_microsoft_node([](ModelMaker& m) {
    onnx::NodeProto& node = m.node("QuickGelu", {"x"}, {"y"});
    node.set_domain("com.microsoft");
    set(node, "beta", 2.0);
  });
  EXPECT_NE(attribute.find("attribute 'beta' is not supported"), std::string::npos) << attribute;
  const std::string input = error_of_microsoft_node([](ModelMaker& m) {
    m.node("Gelu", {"x", "", "x"}, {"y"}).set_domain("com.microsoft");
  });
  EXPECT_NE(input.find("input 2 is not supported"), std::string::npos) << input;
}

TEST(Microsoft, OtherOperatorsNameTheMend) {
  for (const char* domain : {"com.microsoft", "com.microsoft.nchwc"}) {
    const std::string error = error_of_microsoft_node(
        [&](ModelMaker& m) { m.node("NhwcMaxPool", {"x"}, {"y"}).set_domain(domain); });
    EXPECT_NE(error.find(domain), std::string::npos) << error;
    EXPECT_NE(error.find("graph_optimization_level"), std::string::npos) << error;
  }
}

TEST(Microsoft, OtherFormsNameTheMend) {
  const std::string error = error_of_microsoft_node([](ModelMaker& m) {
    m.input("bias", {4}).weight("w", {4, 4});
    onnx::NodeProto& node = m.node("FusedGemm", {"x", "w", "bias"}, {"y"});
    node.set_domain("com.microsoft");
    set(node, "activation", std::string("Softsign"));
  });
  EXPECT_NE(error.find("activation Softsign"), std::string::npos) << error;
  EXPECT_NE(error.find("graph_optimization_level"), std::string::npos) << error;
}

// onnxruntime's own spelling in ai.onnx is accepted only where ONNX has no such operator.
TEST(Microsoft, OnlyWhatExtendsOnnxStandsInItsDomain) {
  const std::string error =
      error_of_microsoft_node([](ModelMaker& m) { m.node("BiasGelu", {"x"}, {"y"}); });
  EXPECT_NE(error.find("has no operator BiasGelu"), std::string::npos) << error;
}

TEST(Microsoft, WeightsOfFusedOperatorsAreParameters) {
  ModelMaker m(17);
  onnx::OperatorSetIdProto& set = *m.model.add_opset_import();
  set.set_domain("com.microsoft");
  set.set_version(1);
  m.input("x", {2, 4}).weight("onnx::MatMul_12", {4, 3}).output("y");
  m.node("FusedMatMul", {"x", "onnx::MatMul_12"}, {"y"}).set_domain("com.microsoft");
  const Graph graph = import_graph(m.file(), engine_operators(), with_evaluator()).graph;
  ASSERT_EQ(graph.states.size(), 1u) << to_text(graph);
  EXPECT_TRUE(graph.states[0].trainable);
}

}  // namespace
}  // namespace tandem::testing
