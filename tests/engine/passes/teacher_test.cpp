// A teacher next to a model in one graph: names, inputs, and what is refused.
#include "engine/passes/teacher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/graph/builder.h"
#include "tests/harness/operator_case.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TeacherPass : public ::testing::Test {
 protected:
  /// y = x W, W of this number in all elements.
  Graph product(const std::string& layer, float number, const Shape& shape = {4, 6},
                const std::string& input = "x") {
    GraphBuilder g(operators_);
    const ValueId x = g.input(input, {DType::float32, shape});
    State state;
    state.name = layer + ".weight";
    state.path = layer + ":weight";
    state.trainable = true;
    state.start = HostTensor(TensorType{DType::float32, {shape[1], 3}});
    for (float& w : state.start.as<float>()) w = number;
    g.set_scope({layer + ".MatMul", Phase::forward, {}});
    g.output("y", g.matmul(x, g.state(std::move(state))));
    return g.finish();
  }
  Graph joined(const Graph& teacher, std::map<std::string, std::string> inputs = {}) {
    TeacherRequest request{"teacher.", std::move(inputs), {}};
    request.where.file = "train.toml";
    request.where.line = 5;
    return with_teacher(product("fc", 1), teacher, operators_, request);
  }
  std::string refusal(const Graph& teacher, std::map<std::string, std::string> inputs = {}) {
    try {
      joined(teacher, std::move(inputs));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "no error";
  }

  const OperatorSet operators_ = all_operators();
};

TEST_F(TeacherPass, BothReadTheSameInput) {
  const Graph graph = joined(product("fc", 2));
  verify(graph);
  ASSERT_EQ(graph.inputs.size(), 1u);
  ASSERT_EQ(graph.outputs.size(), 1u);
  const ValueId taught = graph.find_value("teacher.y");
  ASSERT_TRUE(taught);
  EXPECT_EQ(graph.node(graph.value(taught).producer).path, "teacher.fc.MatMul");
  const State& state = *graph.find_state("teacher.fc.weight");
  EXPECT_EQ(state.path, "teacher.fc:weight");
  EXPECT_FALSE(state.trainable);
  EXPECT_EQ(state.held_by, HeldBy::teacher);
  EXPECT_TRUE(graph.find_state("fc.weight")->trainable);
  HostTensor x(TensorType{DType::float32, {4, 6}});
  for (float& number : x.as<float>()) number = 0.5f;
  const auto values = testing::evaluate(graph, {{"x", x}}, {graph.outputs[0].value, taught});
  EXPECT_EQ(values[0].number(0), 3);
  EXPECT_EQ(values[1].number(0), 6);
}

TEST_F(TeacherPass, InputsOfOtherNamesAreMapped) {
  EXPECT_TRUE(
      joined(product("fc", 2, {4, 6}, "pixels"), {{"pixels", "x"}}).find_value("teacher.y"));
  EXPECT_THAT(refusal(product("fc", 2, {4, 6}, "pixels")),
              AllOf(HasSubstr("train.toml:5"), HasSubstr("the model has no input \"pixels\""),
                    HasSubstr("distillation.inputs")));
  EXPECT_THAT(refusal(product("fc", 2), {{"z", "x"}}),
              HasSubstr("the teacher has no input of this"));
}

TEST_F(TeacherPass, RefusesInputsOfOtherTypesAndTakenNames) {
  EXPECT_THAT(refusal(product("fc", 2, {4, 9})),
              AllOf(HasSubstr("in another type"), HasSubstr("[4, 9]"), HasSubstr("[4, 6]")));
  TeacherRequest request{"teacher.", {}, {}};
  try {
    with_teacher(product("teacher.fc", 1), product("fc", 2), operators_, request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("teacher.fc.weight"));
  }
}

}  // namespace
}  // namespace tandem
