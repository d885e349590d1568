// Fake quantization: QuantizeLinear followed by DequantizeLinear has PyTorch's results and its
// gradient, which passes straight through within the range; so models with it train.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "importer/file/tensor_data.h"
#include "tests/harness/folders.h"
#include "tests/importer/support.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;

void add_tensor(ModelMaker& m, const std::string& name, const HostTensor& values) {
  onnx::TensorProto& tensor = *m.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(importer::dtype_to_onnx(values.dtype()));
  for (std::int64_t extent : values.shape()) tensor.add_dims(extent);
  tensor.set_raw_data(values.data(), values.bytes());
}

HostTensor tensor_of_numbers(const Json& json, const Shape& shape, DType dtype) {
  return HostTensor::from(shape, json.get<std::vector<double>>()).converted(dtype);
}

// x, or the initializer "w" in its place, quantized and back.
ModelMaker quantized(const Json& json, bool of_weight) {
  ModelMaker m(21);
  const auto shape = json.at("shape").get<Shape>();
  const auto count = static_cast<std::int64_t>(json.at("scale").size());
  const bool has_axis = !json.at("axis").is_null();
  const Shape scales = has_axis ? Shape{count} : Shape{};
  const DType type = json.at("type") == "int8" ? DType::int8 : DType::uint8;
  add_tensor(m, "scale", tensor_of_numbers(json.at("scale"), scales, DType::float32));
  add_tensor(m, "zero", tensor_of_numbers(json.at("zero_point"), scales, type));
  if (of_weight) {
    add_tensor(m, "w", tensor_of_numbers(json.at("x"), shape, DType::float32));
  } else {
    m.input("x", shape);
  }
  onnx::NodeProto& q = m.node("QuantizeLinear", {of_weight ? "w" : "x", "scale", "zero"}, {"q"});
  onnx::NodeProto& dq = m.node("DequantizeLinear", {"q", "scale", "zero"}, {"y"});
  for (onnx::NodeProto* node : {&q, &dq}) {
    if (has_axis) set(*node, "axis", json.at("axis").get<std::int64_t>());
  }
  m.output("y");
  return m;
}

void check_fake_quantization(const Json& json) {
  const auto shape = json.at("shape").get<Shape>();
  GraphBuilder builder(
      engine_operators(),
      import_graph(quantized(json, false).file(), engine_operators(), with_evaluator()).graph);
  const ValueId y = builder.graph().outputs[0].value;
  const ValueId x = builder.graph().find_input("x")->value;
  const ValueId dy = builder.constant(tensor_of_numbers(json.at("dy"), shape, DType::float32));
  const std::vector<GradientSeed> seeds{{y, dy}};
  const std::vector<ValueId> dx = add_gradients(builder, seeds, std::vector<ValueId>{x});
  ASSERT_TRUE(dx[0]) << "no gradient";
  builder.output("dx", dx[0]);
  const NamedTensors results =
      run_graph(builder.finish(), {{"x", tensor_of_numbers(json.at("x"), shape, DType::float32)}});
  int cut = 0;
  for (std::int64_t i = 0; i < element_count(shape); ++i) {
    const auto k = static_cast<std::size_t>(i);
    const double slope = json.at("dx")[k].get<double>();
    cut += slope == 0;
    EXPECT_NEAR(results[0].second.number(i), json.at("y")[k].get<double>(), 1e-6) << "y " << i;
    // dy times the scale and divided by it
    EXPECT_NEAR(results[1].second.number(i), slope, 1e-6) << "dx " << i;
  }
  EXPECT_GT(cut, 0);
  EXPECT_LT(cut, element_count(shape));
}

const Json& fake_quantization_cases() {
  static const Json all =
      Json::parse(read_file(source_folder() + "/tests/data/signal_gradients.json"))
          .at("fake_quantization");
  return all;
}

TEST(FakeQuantization, HasPyTorchsGradient) {
  for (const Json& json : fake_quantization_cases()) {
    SCOPED_TRACE(fmt::format("{}, axis {}", json.at("type").dump(), json.at("axis").dump()));
    check_fake_quantization(json);
  }
}

// The largest and the least int8 are inside the range: a weight whose scale comes from its largest
// element is trained by it. torch.fake_quantize_per_tensor_affine of PyTorch 2.15 does the same.
TEST(FakeQuantization, PassesTheGradientAtTheEndsOfTheRange) {
  ModelMaker m(21);
  m.input("x", {6}).output("y");
  add_tensor(m, "scale", HostTensor::from<float>({}, {1}));
  add_tensor(m, "zero", HostTensor::from<std::int8_t>({}, {0}));
  m.node("QuantizeLinear", {"x", "scale", "zero"}, {"q"});
  m.node("DequantizeLinear", {"q", "scale", "zero"}, {"y"});
  GraphBuilder builder(engine_operators(),
                       import_graph(m.file(), engine_operators(), with_evaluator()).graph);
  const ValueId y = builder.graph().outputs[0].value;
  const ValueId x = builder.graph().find_input("x")->value;
  const ValueId dy = builder.constant(HostTensor::from<float>({6}, {1, 2, 3, 4, 5, 6}));
  const std::vector<GradientSeed> seeds{{y, dy}};
  builder.output("dx", add_gradients(builder, seeds, std::vector<ValueId>{x})[0]);
  const NamedTensors results = run_graph(
      builder.finish(), {{"x", HostTensor::from<float>({6}, {-128, 127, 127.4f, 128, -129, 0})}});
  const std::vector<double> values{-128, 127, 127, 127, -128, 0}, slopes{1, 2, 3, 0, 0, 6};
  for (std::int64_t i = 0; i < 6; ++i) {
    const auto k = static_cast<std::size_t>(i);
    EXPECT_EQ(results[0].second.number(i), values[k]) << i;
    EXPECT_EQ(results[1].second.number(i), slopes[k]) << i;
  }
}

// Only the weight is a parameter; scale and zero point are not.
TEST(FakeQuantization, KeepsTheFloatingPointWeight) {
  const ImportResult result = import_graph(quantized(fake_quantization_cases()[1], true).file(),
                                           engine_operators(), with_evaluator());
  ASSERT_EQ(result.graph.states.size(), 1u);
  EXPECT_EQ(result.graph.states[0].name, "w");
}

// What a file clips and casts by itself is truncated and has no gradient.
TEST(FakeQuantization, IsNotSeenInOtherCasts) {
  ModelMaker m(21);
  m.input("x", {4}).output("y");
  add_tensor(m, "low", HostTensor::from<float>({}, {-128}));
  add_tensor(m, "high", HostTensor::from<float>({}, {127}));
  add_tensor(m, "scale", HostTensor::from<float>({}, {2}));
  m.node("Clip", {"x", "low", "high"}, {"clipped"});
  set(m.node("Cast", {"clipped"}, {"q"}), "to", std::int64_t{onnx::TensorProto::INT8});
  m.node("DequantizeLinear", {"q", "scale"}, {"y"});
  const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
  const HostTensor y =
      run_graph(result.graph, {{"x", HostTensor::from<float>({4}, {1.75, -2.5, 500, 0.5})}})[0]
          .second;
  const std::vector<double> wanted{2, -4, 254, 0};
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(y.number(i), wanted[static_cast<std::size_t>(i)]);
}

}  // namespace
}  // namespace tandem::testing
