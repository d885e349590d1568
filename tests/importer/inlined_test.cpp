// Functions and branches of If: what they make, and the weights in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/error.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
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

// Function "two" of one output; its call names two, both outputs of the graph.
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

}  // namespace
}  // namespace tandem
