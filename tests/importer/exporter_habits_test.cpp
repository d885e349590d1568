// What exporters write that ONNX's specification does not mention, and import reads all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using namespace tandem::testing;

/// A conv3d without a bias as PyTorch's exporter over torch.export writes it: zeros expanded to
/// the shape [channels, 2].
ModelMaker convolution_with_expanded_bias(float element) {
  ModelMaker m;
  m.input("x", {1, 2, 3, 3, 3}).output("y").weight("w", {4, 2, 1, 1, 1}).integers("two", {2});
  onnx::NodeProto& shape = m.node("Shape", {"w"}, {"channels"});
  set(shape, "start", std::int64_t{0});
  set(shape, "end", std::int64_t{1});
  set(m.node("Concat", {"channels", "two"}, {"bias_shape"}), "axis", std::int64_t{0});
  onnx::TensorProto& zero = *m.node("Constant", {}, {"zero"}).add_attribute()->mutable_t();
  onnx::AttributeProto& value = *m.graph().mutable_node(2)->mutable_attribute(0);
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  zero.set_data_type(onnx::TensorProto::FLOAT);
  zero.add_float_data(element);
  m.node("Expand", {"zero", "bias_shape"}, {"bias"});
  m.node("Conv", {"x", "w", "bias"}, {"y"});
  return m;
}

TEST(ExporterHabits, ZerosOfAWrongShapeAreNoBias) {
  const Graph graph =
      import_graph(convolution_with_expanded_bias(0).file(), engine_operators(), with_evaluator())
          .graph;
  const Node* convolution = nullptr;
  for (const Node& node : graph.nodes) {
    if (node.op->name == "Conv") convolution = &node;
  }
  ASSERT_NE(convolution, nullptr) << to_text(graph);
  EXPECT_FALSE(convolution->inputs.size() > 2 && convolution->inputs[2]) << to_text(graph);
}

TEST(ExporterHabits, OtherNumbersOfAWrongShapeAreRefused) {
  const std::string error = error_of([] {
    import_graph(convolution_with_expanded_bias(1).file(), engine_operators(), with_evaluator());
  });
  EXPECT_THAT(error, HasSubstr("shape of 'bias'"));
}

}  // namespace
}  // namespace tandem
