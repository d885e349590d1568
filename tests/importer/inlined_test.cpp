// Functions and branches of If: their graphs, and the weights in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "engine/graph/error.h"
#include "importer/export_graph.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using namespace testing;

/// If on the constant `yes` over x [2, 3]; its branches are the graphs of other makers.
class IfModel {
 public:
  explicit IfModel(bool taken, const std::vector<std::string>& outputs = {"y"}) {
    m.input("x", {2, 3});
    for (const std::string& name : outputs) m.output(name);
    onnx::TensorProto& yes = *m.graph().add_initializer();
    yes.set_name("yes");
    yes.set_data_type(onnx::TensorProto::BOOL);
    yes.add_int32_data(taken ? 1 : 0);
    node = &m.node("If", {"yes"}, outputs);
    node->set_name("choice");
  }

  void branch(const std::string& name, const ModelMaker& maker) {
    onnx::AttributeProto& attribute = *node->add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::GRAPH);
    *attribute.mutable_g() = maker.model.graph();
  }

  ModelMaker m;
  onnx::NodeProto* node;
};

// FlexAttention of ai.onnx.preview over equal keys, whose weights are then doubled by the graph
// that it is given: twice the mean of the values.
TEST(Inlined, DefinitionsOfOnnxsOtherDomains) {
  ModelMaker m(26);
  onnx::OperatorSetIdProto& preview = *m.model.add_opset_import();
  preview.set_domain("ai.onnx.preview");
  preview.set_version(1);
  m.input("q", {1, 1, 1, 2}).input("k", {1, 1, 2, 2}).input("v", {1, 1, 2, 3}).output("y");
  onnx::NodeProto& node = m.node("FlexAttention", {"q", "k", "v"}, {"y"});
  node.set_domain("ai.onnx.preview");
  ModelMaker twice(26);
  twice.input("p", {1, 1, 1, 2}).output("p2");
  twice.node("Add", {"p", "p"}, {"p2"});
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name("prob_mod");
  attribute.set_type(onnx::AttributeProto::GRAPH);
  *attribute.mutable_g() = twice.model.graph();
  const Graph graph = import_graph(m.file(), engine_operators(), with_evaluator()).graph;
  const NamedTensors got =
      run_graph(graph, {{"q", HostTensor::from<float>({1, 1, 1, 2}, {1, 2})},
                        {"k", HostTensor::from<float>({1, 1, 2, 2}, {3, -1, 3, -1})},
                        {"v", HostTensor::from<float>({1, 1, 2, 3}, {1, 2, 3, 5, -2, 0})}});
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(got.at(0).second.number(i), std::vector<double>({6, 0, 3})[i], 1e-6);
  }
}

// Function "two" has one output, but its call names two, both of them outputs of the graph.
TEST(Inlined, OutputsThatAFunctionDoesNotMake) {
  ModelMaker m;
  onnx::OperatorSetIdProto& own = *m.model.add_opset_import();
  own.set_domain("own");
  own.set_version(1);
  onnx::FunctionProto& f = *m.model.add_functions();
  f.set_name("two");
  f.set_domain("own");
  for (const char* name : {"a", "b"}) f.add_input(name);
  f.add_output("c");
  f.add_opset_import()->set_version(20);
  onnx::NodeProto& body = *f.add_node();
  body.set_op_type("Relu");
  body.add_input("a");
  body.add_output("c");
  m.input("x", {2, 3}).output("y").output("z");
  onnx::NodeProto& call = m.node("two", {"x"}, {"y", "z", ""});
  call.set_domain("own");
  call.set_name("the_call");
  ScratchFolder folder;
  const auto error = [&] {
    const OnnxFile file = OnnxFile::open(folder.write("m.onnx", m.bytes()));
    return error_of([&] { import_graph(file, engine_operators(), with_evaluator()); });
  };
  EXPECT_EQ(error(), (folder.path() / "m.onnx").string() +
                         ": the_call: function 'two' has no output for 'z': expected at most 1 "
                         "output, got 2 (the file is damaged: export the model again)");
  f.add_output("b");
  EXPECT_THAT(error(), HasSubstr("the_call: 'z' is output 'b' of function 'two', an input that "
                                 "this call leaves out"));
  call.add_input("x");
  EXPECT_EQ(import_graph(m.file(), engine_operators(), with_evaluator()).graph.outputs.size(), 2u);
}

TEST(Inlined, OutputsThatABranchDoesNotMake) {
  IfModel choice(true, {"y", "z"});
  for (const char* name : {"then_branch", "else_branch"}) {
    ModelMaker branch;
    branch.node("Relu", {"x"}, {std::string(name) + "_y"});
    branch.output(std::string(name) + "_y");
    choice.branch(name, branch);
  }
  const OnnxFile file = choice.m.file();
  EXPECT_THAT(error_of([&] { import_graph(file, engine_operators(), with_evaluator()); }),
              HasSubstr("choice: If: then_branch has no output for 'z': expected at most 1 output, "
                        "got 2"));
}

// y = x · w, with w [3, 3] of each branch. Columns of 0.5 + i/8 sum to 2.625, 3 and 3.375, those of
// 1 + i/8 to 1.5 more.
class BranchWeights : public ::testing::Test {
 protected:
  static IfModel model(bool taken) {
    IfModel choice(taken);
    for (const auto& [name, first] : {std::pair{"then_branch", 0.5f}, {"else_branch", 1.0f}}) {
      ModelMaker branch;
      branch.weight("w", {3, 3}, first).node("MatMul", {"x", "w"}, {std::string(name) + "_y"});
      branch.output(std::string(name) + "_y");
      choice.branch(name, branch);
    }
    return choice;
  }
  static double first_result(const Graph& graph) {
    const HostTensor ones = HostTensor::from<float>({2, 3}, std::vector<float>(6, 1.0f));
    return run_graph(graph, {{"x", ones}}).at(0).second.number(0);
  }
  static const ParameterSummary& parameter(const ImportResult& result, const std::string& name) {
    for (const ParameterSummary& p : result.summary.parameters) {
      if (p.name == name) return p;
    }
    throw std::runtime_error("no parameter " + name);
  }
};

TEST_F(BranchWeights, AreParametersOfTheirOwnNames) {
  for (const bool taken : {true, false}) {
    const std::string used = taken ? "w" : "w_2", other = taken ? "w_2" : "w";
    const IfModel choice = model(taken);
    const ImportResult result = import_graph(choice.m.file(), engine_operators(), with_evaluator());
    ASSERT_NE(result.graph.find_state(used), nullptr);
    EXPECT_TRUE(result.graph.find_state(used)->trainable);
    EXPECT_EQ(first_result(result.graph), taken ? 2.625 : 4.125);
    EXPECT_EQ(parameter(result, used).reason, "a float32 initializer that reaches 'y'");
    EXPECT_FALSE(parameter(result, other).trainable);
    EXPECT_EQ(parameter(result, other).reason, "reaches no output");
  }
}

TEST_F(BranchWeights, AreExportedAsTheyWereTrained) {
  ScratchFolder folder;
  const std::filesystem::path to = folder.path() / "trained.onnx";
  const HostTensor trained = HostTensor::from<float>({3, 3}, std::vector<float>(9, 2.0f));
  ExportOptions options;
  options.import = with_evaluator();
  export_graph(model(false).m.file(), engine_operators(), {{"w_2", trained}}, to, options);
  const ImportResult again = import_graph(OnnxFile::open(to), engine_operators(), with_evaluator());
  EXPECT_EQ(first_result(again.graph), 6.0);
}

// A BatchNormalization in a branch has the roles that it has in the main graph.
TEST_F(BranchWeights, HaveTheRolesOfTheirPlaces) {
  IfModel choice(true);
  ModelMaker branch;
  for (const char* name : {"scale", "bias", "mean", "var"}) branch.weight(name, {3});
  branch.node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"h"});
  branch.output("h");
  choice.branch("then_branch", branch);
  ModelMaker other;
  other.node("Relu", {"x"}, {"h2"});
  other.output("h2");
  choice.branch("else_branch", other);
  const ImportResult result = import_graph(choice.m.file(), engine_operators(), with_evaluator());
  std::vector<std::string> trained, buffers;
  for (const State& state : result.graph.states)
    (state.kind == StateKind::buffer ? buffers : trained).push_back(state.name);
  EXPECT_THAT(trained, UnorderedElementsAre("scale", "bias"));
  EXPECT_THAT(buffers, UnorderedElementsAre("mean", "var"));
}

TEST_F(BranchWeights, ThatStayConstantsAreNamed) {
  IfModel choice(true);
  ModelMaker branch;
  onnx::TensorProto& tensor = *branch.node("Constant", {}, {"fixed"}).add_attribute()->mutable_t();
  branch.graph().mutable_node(0)->mutable_attribute(0)->set_name("value");
  branch.graph().mutable_node(0)->mutable_attribute(0)->set_type(onnx::AttributeProto::TENSOR);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const int extent : {3, 4}) tensor.add_dims(extent);
  for (int i = 0; i < 12; ++i) tensor.add_float_data(1);
  branch.node("MatMul", {"x", "fixed"}, {"h"});
  branch.output("h");
  choice.branch("then_branch", branch);
  ModelMaker returned;
  returned.weight("given", {2, 4}).output("given");
  choice.branch("else_branch", returned);
  const ImportResult result = import_graph(choice.m.file(), engine_operators(), with_evaluator());
  EXPECT_THAT(result.graph.states, IsEmpty());
  EXPECT_EQ(parameter(result, "fixed").reason, "a Constant node, not an initializer");
  EXPECT_EQ(parameter(result, "fixed").type, (TensorType{DType::float32, {3, 4}}));
  EXPECT_EQ(parameter(result, "given").reason,
            "an initializer in else_branch of 'choice', not of the main graph");
}

}  // namespace
}  // namespace tandem
