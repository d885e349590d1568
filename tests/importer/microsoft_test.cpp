// Operators of com.microsoft, which onnxruntime writes into models that it optimised: results are
// onnxruntime's (tests/scripts/microsoft_expectations.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/formats/files.h"
#include "importer/file/tensor_data.h"
#include "importer/operators/all.h"
#include "tests/importer/json_nodes.h"
#include "tests/importer/support.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;

Json all_cases() {
  const std::string path = "/tests/data/microsoft_operators.json";
  return Json::parse(read_file(TANDEM_SOURCE_DIR + path)).at("cases");
}

struct Case {
  ModelMaker model;
  ImportOptions options = with_evaluator();
  NamedTensors feeds;

  explicit Case(const Json& json) : model(json.at("opset").get<int>()) {
    onnx::OperatorSetIdProto& set = *model.model.add_opset_import();
    set.set_domain("com.microsoft");
    set.set_version(1);
    std::vector<std::string> names, results;
    for (const Json& entry : json.at("inputs")) {
      names.push_back(entry.is_null() ? "" : fmt::format("x{}", names.size()));
      if (entry.is_null()) continue;
      const HostTensor tensor = tensor_of(entry);
      model.input(names.back(), tensor.shape(), importer::dtype_to_onnx(tensor.dtype()));
      feeds.emplace_back(names.back(), tensor);
    }
    for (const Json& entry : json.at("outputs")) {
      results.push_back(entry.is_null() ? "" : fmt::format("y{}", results.size()));
      if (!entry.is_null()) model.output(results.back());
    }
    onnx::NodeProto& node = model.node(json.at("op"), names, results);
    node.set_domain(json.at("domain"));
    for (const auto& [name, value] : json.at("attributes").items()) {
      set_attribute(node, name, value);
    }
  }
};

TEST(Microsoft, OperatorsGiveOnnxruntimesResults) {
  for (const Json& json : all_cases()) {
    SCOPED_TRACE(json.at("op").get<std::string>() + ": " + json.at("name").get<std::string>());
    try {
      const Case c(json);
      const Graph graph = import_graph(c.model.file(), engine_operators(), c.options).graph;
      ASSERT_NO_THROW(verify(graph)) << to_text(graph);
      const NamedTensors got = run_graph(graph, c.feeds);
      std::size_t next = 0;
      for (const Json& entry : json.at("outputs")) {
        if (entry.is_null()) continue;
        const auto& [name, y] = got.at(next++);
        const HostTensor want = tensor_of(entry);
        ASSERT_EQ(y.type(), want.type()) << name;
        for (std::int64_t i = 0; i < want.type().elements(); ++i) {
          EXPECT_NEAR(y.number(i), want.number(i), 1e-5) << name << ", element " << i;
        }
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(Microsoft, EachOperatorHasACase) {
  std::set<std::string> proven;
  for (const Json& json : all_cases()) {
    proven.insert("com.microsoft::" + json.at("op").get<std::string>());
  }
  for (const importer::Lowering& lowering : importer::microsoft_lowerings()) {
    EXPECT_EQ(proven.count(lowering.op), 1u) << lowering.op;
  }
}

std::string error_of_node(const std::function<void(ModelMaker&)>& make) {
  ModelMaker m(17);
  onnx::OperatorSetIdProto& set = *m.model.add_opset_import();
  set.set_domain("com.microsoft");
  set.set_version(1);
  m.input("x", {2, 4}).output("y");
  make(m);
  return error_of([&] { import_graph(m.file(), engine_operators(), with_evaluator()); });
}

// What a node has and import does not know changes its meaning: it is refused by name.
TEST(Microsoft, WhatIsNotReadIsRefused) {
  const std::string attribute = error_of_node([](ModelMaker& m) {
    onnx::NodeProto& node = m.node("QuickGelu", {"x"}, {"y"});
    node.set_domain("com.microsoft");
    set(node, "beta", 2.0);
  });
  EXPECT_NE(attribute.find("attribute 'beta' is not supported"), std::string::npos) << attribute;
  const std::string input = error_of_node([](ModelMaker& m) {
    m.node("Gelu", {"x", "", "x"}, {"y"}).set_domain("com.microsoft");
  });
  EXPECT_NE(input.find("input 2 is not supported"), std::string::npos) << input;
}

TEST(Microsoft, OtherOperatorsNameTheMend) {
  for (const char* domain : {"com.microsoft", "com.microsoft.nchwc"}) {
    const std::string error = error_of_node(
        [&](ModelMaker& m) { m.node("NhwcMaxPool", {"x"}, {"y"}).set_domain(domain); });
    EXPECT_NE(error.find(domain), std::string::npos) << error;
    EXPECT_NE(error.find("graph_optimization_level"), std::string::npos) << error;
  }
}

TEST(Microsoft, OtherFormsNameTheMend) {
  const std::string error = error_of_node([](ModelMaker& m) {
    m.input("bias", {4}).weight("w", {4, 4});
    onnx::NodeProto& node = m.node("FusedGemm", {"x", "w", "bias"}, {"y"});
    node.set_domain("com.microsoft");
    set(node, "activation", std::string("Softsign"));
  });
  EXPECT_NE(error.find("activation Softsign"), std::string::npos) << error;
  EXPECT_NE(error.find("graph_optimization_level"), std::string::npos) << error;
}

// onnxruntime's own spelling in ai.onnx is taken where ONNX has no such operator, and no other.
TEST(Microsoft, OnlyWhatExtendsOnnxStandsInItsDomain) {
  const std::string error = error_of_node([](ModelMaker& m) { m.node("BiasGelu", {"x"}, {"y"}); });
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
