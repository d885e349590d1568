// The report on missing operators: all of them at once, with their numbers, first places and what
// would help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/graph/error.h"
#include "importer/operator_help.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace tandem::testing;
using importer::what_would_help;

ModelSummary summary_of(const ModelMaker& m) {
  ImportOptions options = with_evaluator();
  options.collect_problems = true;
  return import_graph(m.file(), engine_operators(), options).summary;
}

std::string error_text(const ModelMaker& m) {
  return error_of([&] { import_graph(m.file(), engine_operators(), with_evaluator()); });
}

onnx::NodeProto& foreign(ModelMaker& m, const std::string& op, const std::string& input,
                         const std::string& output, const std::string& domain = "own") {
  onnx::NodeProto& node = m.node(op, {input}, {output});
  node.set_domain(domain);
  node.set_name(output + "_node");
  return node;
}

ModelMaker maker_with_domain(const std::string& domain = "own") {
  ModelMaker m;
  m.input("x", {2, 3}).output("y");
  onnx::OperatorSetIdProto& own = *m.model.add_opset_import();
  own.set_domain(domain);
  own.set_version(1);
  return m;
}

TEST(MissingOperators, BehindOneThatIsMissing) {
  ModelMaker m = maker_with_domain();
  foreign(m, "One", "x", "a");
  m.node("Relu", {"a"}, {"b"});
  foreign(m, "Two", "b", "c");
  foreign(m, "Two", "c", "d");
  m.node("Relu", {"d"}, {"y"});
  const ModelSummary summary = summary_of(m);
  ASSERT_EQ(summary.problems.size(), 2u);
  EXPECT_EQ(summary.problems[0].op, "own::Two");
  EXPECT_EQ(summary.problems[0].count, 2);
  EXPECT_EQ(summary.problems[0].path, "c_node");
  EXPECT_EQ(summary.problems[1].op, "own::One");
  EXPECT_EQ(summary.problems[1].count, 1);
  for (const Problem& p : summary.problems) EXPECT_FALSE(p.fix.empty());
  EXPECT_EQ(missing_operators(summary), "2 operators are missing (3 of 5 nodes)");
  EXPECT_THAT(error_text(m), AllOf(HasSubstr("2 operators are missing (3 of 5 nodes)"),
                                   HasSubstr("c_node: own::Two: "), HasSubstr("a_node: own::One: "),
                                   HasSubstr(", 2 nodes (")));
}

TEST(MissingOperators, InBranchesAndFunctionsBehindIt) {
  ModelMaker m = maker_with_domain();
  onnx::FunctionProto& function = *m.model.add_functions();
  function.set_domain("own");
  function.set_name("Block");
  function.add_input("p");
  function.add_output("q");
  onnx::OperatorSetIdProto& opset = *function.add_opset_import();
  opset.set_domain("other");
  opset.set_version(1);
  onnx::NodeProto& inner = *function.add_node();
  inner.set_op_type("Deep");
  inner.set_domain("other");
  inner.add_input("p");
  inner.add_output("q");
  foreign(m, "One", "x", "a");
  foreign(m, "Block", "a", "b");
  m.node("ReduceSum", {"b"}, {"s"});
  m.node("Cast", {"s"}, {"condition"});
  set(*m.graph().mutable_node(3), "to", std::int64_t{onnx::TensorProto::BOOL});
  onnx::NodeProto& branch = m.node("If", {"condition"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& attribute = *branch.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    onnx::GraphProto& graph = *attribute.mutable_g();
    graph.set_name(name);
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type("Inside");
    node.set_domain("own");
    node.add_input("b");
    node.add_output(std::string(name) + "_y");
    graph.add_output()->set_name(std::string(name) + "_y");
  }
  const ModelSummary summary = summary_of(m);
  std::vector<std::string> names;
  for (const Problem& p : summary.problems) names.push_back(p.op);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("own::One", "other::Deep", "own::Inside"));
  EXPECT_EQ(summary.problems[0].op, "own::Inside");
  EXPECT_EQ(summary.problems[0].count, 2);
}

TEST(MissingOperators, ParametersBehindItAreWhatTheyWere) {
  ModelMaker m = maker_with_domain();
  m.weight("fc.weight", {3, 4}).weight("unused.weight", {3});
  foreign(m, "One", "x", "a");
  m.node("MatMul", {"a", "fc.weight"}, {"y"});
  const ModelSummary summary = summary_of(m);
  ASSERT_EQ(summary.parameters.size(), 2u);
  EXPECT_TRUE(summary.parameters[0].trainable);
  EXPECT_THAT(summary.parameters[0].reason, HasSubstr("reaches 'y'"));
  EXPECT_FALSE(summary.parameters[1].trainable);
  EXPECT_EQ(summary.parameters[1].reason, "reaches no output");
}

TEST(MissingOperators, AFreeAxisIsToldBesideThem) {
  ModelMaker m;
  m.free_input("x", {"batch", "time"}).output("y").weight("w", {3});
  m.node("Mul", {"x", "w"}, {"a"});
  onnx::OperatorSetIdProto& own = *m.model.add_opset_import();
  own.set_domain("own");
  own.set_version(1);
  foreign(m, "One", "a", "y");
  const ModelSummary summary = summary_of(m);
  ASSERT_EQ(summary.problems.size(), 2u);
  EXPECT_EQ(summary.problems[0].op, "own::One");
  EXPECT_EQ(summary.problems[1].kind, "free_dimension");
  EXPECT_THAT(summary.problems[1].fix,
              AllOf(HasSubstr("model.bind.time=N"), HasSubstr("--bind time=N")));
  EXPECT_TRUE(summary.parameters[0].trainable);
}

TEST(MissingOperators, TenLinesAtMost) {
  ModelMaker m = maker_with_domain();
  std::string last = "x";
  for (int i = 0; i < 30; ++i) {
    const std::string next = "v" + std::to_string(i);
    foreign(m, "Op" + std::to_string(i), last, next);
    last = next;
  }
  m.node("Identity", {last}, {"y"});
  const std::string text = error_text(m);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 9);
  EXPECT_THAT(text, AllOf(HasSubstr("30 operators are missing (30 of 31 nodes)"),
                          HasSubstr("and 22 more problems"), HasSubstr("tandem inspect")));
}

TEST(MissingOperators, WhatWouldHelp) {
  onnx::NodeProto node;
  node.set_op_type("Gelu");
  EXPECT_THAT(what_would_help(node, 17), HasSubstr("opset_version=20"));
  EXPECT_THAT(what_would_help(node, 20), HasSubstr("dynamo"));
  node.set_op_type("Nonsense");
  EXPECT_THAT(what_would_help(node, 20), HasSubstr("wrong"));
  node.set_domain("com.microsoft");
  EXPECT_THAT(what_would_help(node, 20), HasSubstr("before"));
  node.set_domain("own");
  EXPECT_THAT(what_would_help(node, 20), HasSubstr("custom_translation_table"));
}

// The list's names are existing operators and domains, each once.
TEST(MissingOperators, TheListOfWords) {
  std::vector<std::string> names;
#define TANDEM_HELP(name, text)                      \
  names.push_back(name);                             \
  EXPECT_LE(std::string(text).size(), 100u) << name; \
  EXPECT_NE(std::string(text).back(), '.') << name;
#include "importer/operator_help.inl"
  const std::set<std::string> once(names.begin(), names.end());
  EXPECT_EQ(once.size(), names.size());
}

// A free batch, and an initial state of two samples.
TEST(MissingOperators, ABatchInAnInitialState) {
  ModelMaker m;
  m.free_input("x", {"batch", "time", "width"}).output("y");
  m.weight("w", {1, 4, 3}).weight("r", {1, 4, 4}).weight("h", {2, 1, 4});
  m.node("RNN", {"x", "w", "r", "", "", "h"}, {"y"});
  set(*m.graph().mutable_node(0), "hidden_size", std::int64_t{4});
  set(*m.graph().mutable_node(0), "layout", std::int64_t{1});
  ImportOptions options = with_evaluator();
  options.bind = {{"batch", 3}, {"time", 5}, {"width", 3}};
  const std::string text = error_of([&] { import_graph(m.file(), engine_operators(), options); });
  EXPECT_THAT(text, AllOf(HasSubstr("initial_h"), HasSubstr("--bind batch=2"),
                          HasSubstr("data.drop_last = true")));
}

// A failure that occurs only with another batch than the file's says so.
TEST(MissingOperators, AFixedBatch) {
  ModelMaker m;
  m.input("x", {2, 3}).output("y").weight("state", {2, 3});
  m.node("Concat", {"x", "state"}, {"y"});
  set(*m.graph().mutable_node(0), "axis", std::int64_t{1});
  ImportOptions options = with_evaluator();
  options.batch = 4;
  const std::string text = error_of([&] { import_graph(m.file(), engine_operators(), options); });
  EXPECT_THAT(text, AllOf(HasSubstr("exported with a batch of 2"),
                          HasSubstr("data.drop_last = true"), Not(HasSubstr("missing"))));
}

}  // namespace
}  // namespace tandem
