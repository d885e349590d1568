// Files with 8-bit floats: their tensors in both forms, weights that are read through them, which
// operators compute or refuse them, and gradients through a rounding to 8 bits.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "engine/graph/float8.h"
#include "importer/export_graph.h"
#include "importer/file/tensor_data.h"
#include "tests/harness/folders.h"
#include "tests/importer/versions.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

onnx::TensorProto& add_initializer(ModelMaker& m, const std::string& name, const HostTensor& values,
                                   bool raw = true) {
  onnx::TensorProto& tensor = *m.graph().add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(importer::dtype_to_onnx(values.dtype()));
  for (std::int64_t extent : values.shape()) tensor.add_dims(extent);
  if (raw) {
    tensor.set_raw_data(values.data(), values.bytes());
  } else {
    const auto* codes = static_cast<const std::uint8_t*>(values.data());
    for (std::size_t i = 0; i < values.bytes(); ++i) tensor.add_int32_data(codes[i]);
  }
  return tensor;
}

/// x times a weight of 8 bits, which Cast or DequantizeLinear makes float32.
ModelMaker product_of_float8(const std::string& op, bool raw = true) {
  ModelMaker m(21);
  m.input("x", {1, 2}).output("y");
  add_initializer(m, "w", typed(e4m3, {2, 2}, {1, -2, 0.3125, 448}), raw);
  add_initializer(m, "scale", HostTensor::from<float>({}, {0.5}));
  if (op == "Cast") {
    set(m.node("Cast", {"w"}, {"wide"}), "to", std::int64_t{onnx::TensorProto::FLOAT});
  } else {
    m.node("DequantizeLinear", {"w", "scale"}, {"wide"});
  }
  m.node("MatMul", {"x", "wide"}, {"y"});
  return m;
}

std::string import_message(const ModelMaker& m) {
  return error_of([&] { import_graph(m.file(), engine_operators(), with_evaluator()); });
}

TEST(Float8File, WeightsAreReadInBothForms) {
  for (const bool raw : {true, false}) {
    for (const std::string op : {"Cast", "DequantizeLinear"}) {
      SCOPED_TRACE(op);
      const ImportResult result =
          import_graph(product_of_float8(op, raw).file(), engine_operators(), with_evaluator());
      const HostTensor x = HostTensor::from<float>({1, 2}, {1, 2});
      const double scale = op == "Cast" ? 1 : 0.5;
      EXPECT_EQ(numbers_of(run_graph(result.graph, {{"x", x}})[0].second),
                (Numbers{1.625 * scale, 894 * scale}));
    }
  }
}

// Like 8-bit integers they are not parameters.
TEST(Float8File, WeightsAreNotTrained) {
  const ImportResult result =
      import_graph(product_of_float8("Cast").file(), engine_operators(), with_evaluator());
  EXPECT_TRUE(result.graph.states.empty());
  for (const ParameterSummary& parameter : result.summary.parameters) {
    if (parameter.name != "w") continue;
    EXPECT_FALSE(parameter.trainable);
    EXPECT_THAT(parameter.reason,
                AllOf(HasSubstr("float8_e4m3fn is not trained"), HasSubstr("float32")));
    return;
  }
  ADD_FAILURE() << "the weight is not listed";
}

TEST(Float8File, ExportKeepsTheBytes) {
  const ScratchFolder folder;
  const ModelMaker m = product_of_float8("DequantizeLinear", false);
  const auto path = folder.path() / "exported.onnx";
  ExportOptions options;
  options.import = with_evaluator();
  export_graph(m.file(), engine_operators(), {}, path, options);
  const OnnxFile file = OnnxFile::open(path);
  const HostTensor& w = file.content().initializers.at("w");
  EXPECT_EQ(w.dtype(), e4m3);
  EXPECT_EQ(numbers_of(w), (Numbers{1, -2, 0.3125, 448}));
}

TEST(Float8File, BrokenTensors) {
  ModelMaker longer = product_of_float8("Cast", false);
  longer.graph().mutable_initializer(0)->add_int32_data(1);
  EXPECT_THAT(import_message(longer), HasSubstr("number of elements"));
  ModelMaker large = product_of_float8("Cast", false);
  large.graph().mutable_initializer(0)->set_int32_data(0, 256);
  EXPECT_THAT(import_message(large), HasSubstr("does not fit its type"));
  ModelMaker cut = product_of_float8("Cast");
  cut.graph().mutable_initializer(0)->mutable_raw_data()->pop_back();
  EXPECT_THAT(import_message(cut), HasSubstr("size of raw_data"));
}

TEST(Float8File, WhatComputesRefusesThemByName) {
  for (const std::string op : {"Add", "Relu", "MatMul", "ReduceSum", "Softmax", "Equal", "Det"}) {
    SCOPED_TRACE(op);
    ModelMaker m(20);
    m.input("x", {2, 2}, importer::dtype_to_onnx(e4m3)).output("y");
    const bool two = op == "Add" || op == "MatMul" || op == "Equal";
    m.node(op, two ? std::vector<std::string>{"x", "x"} : std::vector<std::string>{"x"}, {"y"});
    EXPECT_THAT(import_message(m), AllOf(HasSubstr(op), HasSubstr("float8_e4m3fn"),
                                         HasSubstr("Cast to float32 first")));
  }
}

// Inputs and outputs of the graph, and operators that only move them.
TEST(Float8File, InputsAndOutputs) {
  ModelMaker m(20);
  m.input("x", {2, 2}, importer::dtype_to_onnx(e4m3)).output("y");
  m.input("c", {2, 2}, onnx::TensorProto::BOOL);
  m.node("Transpose", {"x"}, {"t"});
  set(m.node("Concat", {"t", "x"}, {"j"}), "axis", std::int64_t{0});
  m.integers("rows", {1, 2});
  m.node("Gather", {"j", "rows"}, {"g"});
  m.node("Where", {"c", "x", "g"}, {"y"});
  const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
  const HostTensor c = HostTensor::from<double>({2, 2}, {0, 0, 0, 1}).converted(DType::boolean);
  const HostTensor y =
      run_graph(result.graph, {{"x", typed(e4m3, {2, 2}, {1, -2, 0.3125, 448})}, {"c", c}})[0]
          .second;
  EXPECT_EQ(y.dtype(), e4m3);
  EXPECT_EQ(numbers_of(y), (Numbers{-2, 448, 1, 448}));
}

// Replaces a piece of an 8-bit cache.
TEST(Float8File, CachesOfEightBits) {
  ModelMaker m(24);
  m.input("cache", {1, 3, 1}, importer::dtype_to_onnx(e4m3)).output("y");
  m.input("update", {1, 1, 1}, importer::dtype_to_onnx(e4m3));
  m.integers("at", {1});
  m.node("TensorScatter", {"cache", "update", "at"}, {"y"});
  const ImportResult result = import_graph(m.file(), engine_operators(), with_evaluator());
  const HostTensor y = run_graph(result.graph, {{"cache", typed(e4m3, {1, 3, 1}, {1, 2, 3})},
                                                {"update", typed(e4m3, {1, 1, 1}, {-448})}})[0]
                           .second;
  EXPECT_EQ(y.dtype(), e4m3);
  EXPECT_EQ(numbers_of(y), (Numbers{1, -448, 3}));
}

const Json& gradients() {
  static const Json all =
      Json::parse(read_file(source_folder() + "/tests/data/float8.json")).at("gradients");
  return all;
}

HostTensor tensor_of_floats(const Json& json) {
  const auto values = json.get<std::vector<double>>();
  return HostTensor::from({static_cast<std::int64_t>(values.size())}, values)
      .converted(DType::float32);
}

/// x to 8 bits and back, by two Casts or by QuantizeLinear and DequantizeLinear with a scale of 1.
ModelMaker rounded(const Json& json, bool by_casts) {
  const DType dtype = *dtype_from_name(json.at("type").get<std::string>());
  ModelMaker m(21);
  m.input("x", {static_cast<std::int64_t>(json.at("x").size())}).output("y");
  if (by_casts) {
    set(m.node("Cast", {"x"}, {"q"}), "to", std::int64_t{importer::dtype_to_onnx(dtype)});
    set(m.node("Cast", {"q"}, {"y"}), "to", std::int64_t{onnx::TensorProto::FLOAT});
  } else {
    add_initializer(m, "scale", HostTensor::from<float>({}, {1}));
    add_initializer(m, "zero", typed(dtype, {}, {0}));
    m.node("QuantizeLinear", {"x", "scale", "zero"}, {"q"});
    m.node("DequantizeLinear", {"q", "scale", "zero"}, {"y"});
  }
  return m;
}

// The gradients are PyTorch's for a rounding that is written out (tests/scripts/float8_values.py).
TEST(Float8File, GradientsPassThroughTheRounding) {
  ASSERT_EQ(gradients().size(), 4u);
  for (const Json& json : gradients()) {
    for (const bool by_casts : {true, false}) {
      SCOPED_TRACE(fmt::format("{} {}", json.at("type").dump(), by_casts ? "Cast" : "Quantize"));
      GraphBuilder builder(
          engine_operators(),
          import_graph(rounded(json, by_casts).file(), engine_operators(), with_evaluator()).graph);
      const ValueId y = builder.graph().outputs[0].value;
      const ValueId x = builder.graph().find_input("x")->value;
      const ValueId dy = builder.constant(tensor_of_floats(json.at("dy")));
      const std::vector<GradientSeed> seeds{{y, dy}};
      const std::vector<ValueId> dx = add_gradients(builder, seeds, std::vector<ValueId>{x});
      ASSERT_TRUE(dx[0]) << "no gradient";
      builder.output("dx", dx[0]);
      const NamedTensors results =
          run_graph(builder.finish(), {{"x", tensor_of_floats(json.at("x"))}});
      EXPECT_EQ(numbers_of(results[0].second), numbers_of(tensor_of_floats(json.at("y"))));
      EXPECT_EQ(numbers_of(results[1].second), numbers_of(tensor_of_floats(json.at("dx"))));
    }
  }
}

// Scales are powers of two, and no gradient reaches what they were made of.
TEST(Float8File, NoGradientThroughPowersOfTwo) {
  ModelMaker m(24);
  m.input("x", {2}).output("y");
  set(m.node("Cast", {"x"}, {"q"}), "to", std::int64_t{onnx::TensorProto::FLOAT8E8M0});
  set(m.node("Cast", {"q"}, {"y"}), "to", std::int64_t{onnx::TensorProto::FLOAT});
  GraphBuilder builder(engine_operators(),
                       import_graph(m.file(), engine_operators(), with_evaluator()).graph);
  const ValueId y = builder.graph().outputs[0].value;
  const ValueId x = builder.graph().find_input("x")->value;
  const std::vector<GradientSeed> seeds{
      {y, builder.constant(HostTensor::from<float>({2}, {1, 1}))}};
  EXPECT_FALSE(add_gradients(builder, seeds, std::vector<ValueId>{x})[0]);
}

}  // namespace
}  // namespace tandem::testing
