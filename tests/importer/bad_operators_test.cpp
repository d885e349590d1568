// Operators with impossible attributes, shapes or settings: each is an Error with the operator's
// path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "engine/graph/error.h"
#include "tests/importer/stages.h"
#include "tests/importer/support.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using namespace tandem::testing;
using Ints64 = std::vector<std::int64_t>;

struct OneNode {
  ModelMaker m;
  onnx::NodeProto* node = nullptr;
  OneNode(const std::string& op, const std::vector<std::string>& inputs, int outputs = 1,
          int opset = 20)
      : m(opset) {
    std::vector<std::string> names;
    for (int i = 0; i < outputs; ++i) names.push_back("y" + std::to_string(i));
    m.output("y0");
    node = &m.node(op, inputs, names);
    node->set_name("the_node");
  }
  std::string error() {
    expect_same_diagnosis(m.bytes());
    return error_of([&] { import_graph(m.file(), engine_operators(), with_evaluator()); });
  }
};

TEST(BadOperator, Attributes) {
  OneNode missing("Concat", {"x", "x"});
  missing.m.input("x", {2, 3});
  EXPECT_THAT(missing.error(), HasSubstr("the_node"));
  OneNode wrong("Softmax", {"x"});
  wrong.m.input("x", {2, 3});
  set(*wrong.node, "axis", std::string("1"));
  EXPECT_THAT(wrong.error(), HasSubstr("the_node"));
  OneNode unknown("Relu", {"x"});
  unknown.m.input("x", {2, 3});
  set(*unknown.node, "colour", std::int64_t{1});
  EXPECT_THAT(unknown.error(), HasSubstr("colour"));
  OneNode reference("Softmax", {"x"});
  reference.m.input("x", {2, 3});
  set(*reference.node, "axis", std::int64_t{1});
  reference.node->mutable_attribute(0)->set_ref_attr_name("axis");
  EXPECT_THAT(reference.error(), HasSubstr("outside of a function"));
  OneNode inputs("Relu", {"x", "x"});
  inputs.m.input("x", {2, 3});
  EXPECT_THAT(inputs.error(), HasSubstr("the_node"));
  OneNode absent("Add", {"x", ""});
  absent.m.input("x", {2, 3});
  EXPECT_THAT(absent.error(), HasSubstr("the_node"));
}

// In operator sets older than those of the rows that flags_test.cpp goes through.
TEST(BadOperator, OldFlagsOtherThan0And1) {
  const auto expect_refused = [](const char* op, const std::vector<std::string>& inputs,
                                 const char* flag) {
    SCOPED_TRACE(std::string(op) + " " + flag);
    for (const std::int64_t value : {1000000, -1, 2}) {
      OneNode one(op, inputs, 1, 6);
      for (const std::string& input : inputs) one.m.input(input, {2, 3});
      set(*one.node, flag, value);
      const std::string text = one.error();
      EXPECT_THAT(text, HasSubstr("the_node"));
      EXPECT_THAT(text, HasSubstr(flag));
      EXPECT_THAT(text, HasSubstr("0 or 1"));
    }
  };
  expect_refused("Dropout", {"x"}, "is_test");
  expect_refused("Add", {"x", "y"}, "broadcast");
}

TEST(BadOperator, StatisticsThatAreAWeightToo) {
  ModelMaker m(16);
  m.input("x", {2, 3, 4}).output("y");
  for (const char* name : {"ones", "zeros"}) m.weight(name, {3});
  m.node("BatchNormalization", {"x", "ones", "zeros", "zeros", "ones"}, {"y"}).set_name("norm");
  ImportOptions options;
  const std::string text = error_of([&] { import_graph(m.file(), engine_operators(), options); });
  EXPECT_THAT(text, HasSubstr("norm"));
  EXPECT_THAT(text,
              HasSubstr("its running statistics 'zeros' are a weight, or another operator's, too"));
  ModelMaker copies(16);
  copies.input("x", {2, 3, 4}).output("y");
  for (const char* name : {"scale", "bias", "mean", "var"}) copies.weight(name, {3});
  copies.node("Identity", {"mean"}, {"same"});
  copies.node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"n"});
  copies.node("Mul", {"n", "same"}, {"y"});
  EXPECT_THAT(error_of([&] { import_graph(copies.file(), engine_operators(), options); }),
              HasSubstr("its running statistics 'mean' are a weight, or another operator's, too"));
  ModelMaker modules(16);  // two, whose equal statistics an exporter has merged
  modules.input("x", {2, 3, 4}).output("y");
  for (const char* name : {"scale", "bias", "other", "mean", "var"}) modules.weight(name, {3});
  modules.node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"n"});
  modules.node("BatchNormalization", {"n", "other", "bias", "mean", "var"}, {"y"});
  EXPECT_THAT(error_of([&] { import_graph(modules.file(), engine_operators(), options); }),
              HasSubstr("its running statistics 'mean' are a weight, or another operator's, too"));
  options.batch_norm = "inference";
  EXPECT_NO_THROW(import_graph(m.file(), engine_operators(), options));
  EXPECT_NO_THROW(import_graph(modules.file(), engine_operators(), options));
}

// Bernoulli's definition ends in Cast.
TEST(BadOperator, InsideOfADefinition) {
  OneNode one("Bernoulli", {"x"});
  one.m.input("x", {2, 3});
  set(*one.node, "dtype", std::int64_t{onnx::TensorProto::FLOAT4E2M1});
  const std::string text = one.error();
  EXPECT_THAT(text, HasSubstr("the_node"));
  EXPECT_THAT(text, HasSubstr("in ONNX's definition of Bernoulli: "));
  EXPECT_THAT(text, HasSubstr("newer operator set"));
}

TEST(BadOperator, Axes) {
  const auto with_axis = [](const std::string& op, std::int64_t axis) {
    OneNode one(op, {"x"});
    one.m.input("x", {2, 3});
    set(*one.node, "axis", axis);
    return one.error();
  };
  for (const char* op : {"Softmax", "LogSoftmax", "Concat", "Flatten", "Split"}) {
    EXPECT_THAT(with_axis(op, 100), HasSubstr("axis")) << op;
    EXPECT_THAT(with_axis(op, std::numeric_limits<std::int64_t>::min()), HasSubstr("axis")) << op;
  }
  for (const Ints64& perm : {Ints64{0, 0}, Ints64{0}, Ints64{0, 5}, Ints64{-7, 1}}) {
    OneNode one("Transpose", {"x"});
    one.m.input("x", {2, 3});
    set(*one.node, "perm", perm);
    EXPECT_THAT(one.error(), HasSubstr("the_node"));
  }
  for (const char* op : {"ReduceSum", "Squeeze", "Unsqueeze"}) {
    OneNode one(op, {"x", "axes"});
    one.m.input("x", {1, 1}).integers("axes", {0, 0});
    EXPECT_THAT(one.error(), HasSubstr("twice")) << op;
  }
}

TEST(BadOperator, Shapes) {
  for (const Ints64& shape : {Ints64{-1, -1}, Ints64{4}, Ints64{-2, 3}, Ints64{2, 3, 0},
                              Ints64{-1, 4}, Ints64{std::int64_t{1} << 62, 8}}) {
    OneNode one("Reshape", {"x", "shape"});
    one.m.input("x", {2, 3}).integers("shape", shape);
    EXPECT_THAT(one.error(), HasSubstr("the_node"));
  }
  OneNode computed("Reshape", {"x", "shape"});
  computed.m.input("x", {2, 3}).input("shape", {1}, onnx::TensorProto::INT64);
  EXPECT_THAT(computed.error(), HasSubstr("before the run"));
  for (const Ints64& sizes :
       {Ints64{-5, 8}, Ints64{1, 1}, Ints64{1, 1, 1}, Ints64{std::int64_t{1} << 62, 3}}) {
    OneNode one("Split", {"x", "sizes"}, 2);
    one.m.input("x", {3}).integers("sizes", sizes);
    EXPECT_THAT(one.error(), HasSubstr("the_node"));
  }
  OneNode add("Add", {"a", "b"});
  add.m.input("a", {2, 3}).input("b", {4});
  EXPECT_THAT(add.error(), HasSubstr("the_node"));
  OneNode types("Add", {"a", "b"});
  types.m.input("a", {2}).input("b", {2}, onnx::TensorProto::DOUBLE);
  EXPECT_THAT(types.error(), HasSubstr("the_node"));
  OneNode matmul("MatMul", {"a", "b"});
  matmul.m.input("a", {2, 3}).input("b", {4, 5});
  EXPECT_THAT(matmul.error(), HasSubstr("the_node"));
  OneNode gemm("Gemm", {"a", "b"});
  gemm.m.input("a", {2, 3, 4}).input("b", {4, 5});
  EXPECT_THAT(gemm.error(), HasSubstr("the_node"));
}

struct Conv {
  Ints64 x{1, 4, 5, 5}, weight{2, 4, 3, 3};
  std::vector<std::pair<std::string, Ints64>> lists;
  std::int64_t group = 1;
};

TEST(BadOperator, Convolution) {
  const auto error = [](const Conv& c) {
    OneNode one("Conv", {"x", "w"});
    one.m.input("x", c.x).weight("w", c.weight);
    for (const auto& [name, values] : c.lists) set(*one.node, name, values);
    set(*one.node, "group", c.group);
    return one.error();
  };
  EXPECT_THAT(error({.group = 0}), HasSubstr("the_node"));
  EXPECT_THAT(error({.group = -1}), HasSubstr("the_node"));
  EXPECT_THAT(error({.group = 3}), HasSubstr("the_node"));
  EXPECT_THAT(error({.lists = {{"strides", {0, 1}}}}), HasSubstr("strides"));
  EXPECT_THAT(error({.lists = {{"dilations", {0, 1}}}}), HasSubstr("dilations"));
  EXPECT_THAT(error({.lists = {{"strides", {1}}}}), HasSubstr("strides"));
  EXPECT_THAT(error({.lists = {{"pads", {std::int64_t{1} << 62, 0, 0, 0}}}}), HasSubstr("pads"));
  EXPECT_THAT(error({.lists = {{"pads", {-1, 0, 0, 0}}}}), HasSubstr("pads"));
  EXPECT_THAT(error({.lists = {{"kernel_shape", {3, 2}}}}), HasSubstr("kernel_shape"));
  EXPECT_THAT(error({.weight = {2}}), HasSubstr("the_node"));
  EXPECT_THAT(error({.weight = {2, 4, 7, 7}}), HasSubstr("the_node"));
  EXPECT_THAT(error({.x = {4}}), HasSubstr("the_node"));
}

TEST(BadOperator, TransposedConvolution) {
  const auto error = [](const Conv& c) {
    OneNode one("ConvTranspose", {"x", "w"});
    one.m.input("x", c.x).weight("w", c.weight);
    for (const auto& [name, values] : c.lists) set(*one.node, name, values);
    set(*one.node, "group", c.group);
    return one.error();
  };
  const Ints64 weight{4, 2, 3, 3};
  EXPECT_THAT(error({}), HasSubstr("channels"));
  EXPECT_THAT(error({.weight = weight, .group = 3}), HasSubstr("channels"));
  EXPECT_THAT(error({.weight = weight, .group = -1}), HasSubstr("channels"));
  for (const char* name : {"strides", "dilations", "pads", "output_padding", "output_shape"}) {
    EXPECT_THAT(error({.weight = weight, .lists = {{name, {-1, 0}}}}), HasSubstr(name));
    EXPECT_THAT(error({.weight = weight, .lists = {{name, {2, 2, 2}}}}), HasSubstr(name));
    EXPECT_THAT(error({.weight = weight, .lists = {{name, {std::int64_t{1} << 62, 2}}}}),
                HasSubstr(name));
  }
  EXPECT_THAT(error({.weight = weight, .lists = {{"pads", {9, 9, 9, 9}}}}),
              HasSubstr("no elements"));
  const std::int64_t large = 1 << 30;
  EXPECT_THAT(error({.weight = weight, .lists = {{"strides", {large, large}}}}),
              HasSubstr("the_node"));
}

// Impossible places and sizes.
TEST(BadOperator, IndexingAndResizing) {
  const auto error = [](const std::string& op, const std::vector<Ints64>& settings,
                        const std::vector<std::pair<std::string, std::int64_t>>& attributes) {
    std::vector<std::string> names{"x"};
    for (std::size_t i = 0; i < settings.size(); ++i) {
      names.push_back(settings[i].empty() ? "" : "s" + std::to_string(i));
    }
    OneNode one(op, names, op == "TopK" ? 2 : 1);
    one.m.input("x", {2, 3});
    for (std::size_t i = 0; i < settings.size(); ++i) {
      if (!settings[i].empty()) one.m.integers(names[i + 1], settings[i]);
    }
    for (const auto& [name, value] : attributes) set(*one.node, name, value);
    const std::string text = one.error();
    EXPECT_THAT(text, HasSubstr("the_node"));
    return text;
  };
  const std::int64_t huge = std::int64_t{1} << 60;
  EXPECT_THAT(error("CumSum", {{2}}, {}), HasSubstr("axis"));
  EXPECT_THAT(error("CumSum", {{0, 1}}, {}), HasSubstr("axis"));
  for (const std::int64_t k : {std::int64_t{4}, std::int64_t{-1}, huge}) {
    EXPECT_THAT(error("TopK", {{k}}, {}), HasSubstr("k"));
  }
  EXPECT_THAT(error("ArgMax", {}, {{"axis", 2}}), HasSubstr("axis"));
  EXPECT_THAT(error("EyeLike", {}, {{"dtype", 999}}), HasSubstr("element type"));
  for (const Ints64& sizes : {Ints64{huge, huge}, Ints64{-1, 3}, Ints64{3}}) {
    EXPECT_THAT(error("Resize", {{}, {}, sizes}, {}), HasSubstr("size"));
  }
  EXPECT_THAT(error("Resize", {}, {}), HasSubstr("scales"));
  EXPECT_THAT(error("Resize", {{}, {}, {1 << 24, 1 << 24}}, {}), HasSubstr("too large"));
  EXPECT_THAT(error("DepthToSpace", {}, {{"blocksize", 2}}), HasSubstr("[N, C, H, W]"));
  EXPECT_THAT(error("LpNormalization", {}, {{"p", 3}}), HasSubstr("p"));
  EXPECT_THAT(error("LRN", {}, {{"size", 0}}), HasSubstr("size"));
}

TEST(BadOperator, Pooling) {
  for (const Ints64& kernel :
       {Ints64{3}, Ints64{0, 1}, Ints64{9, 9}, Ints64{-1, 2}, Ints64{std::int64_t{1} << 62, 1}}) {
    for (const char* op : {"MaxPool", "AveragePool"}) {
      OneNode one(op, {"x"});
      one.m.input("x", {1, 2, 5, 5});
      set(*one.node, "kernel_shape", kernel);
      EXPECT_THAT(one.error(), HasSubstr("the_node")) << op;
    }
  }
}

TEST(BadOperator, HugeResults) {
  const std::int64_t huge = std::int64_t{1} << 60;
  const auto with_shape = [&](const std::string& op, const Ints64& numbers) {
    OneNode one(op, op == "ConstantOfShape" ? std::vector<std::string>{"n"}
                                            : std::vector<std::string>{"x", "n"});
    if (op != "ConstantOfShape") one.m.input("x", {1});
    one.m.integers("n", numbers);
    return one.error();
  };
  EXPECT_THAT(with_shape("ConstantOfShape", {huge}), HasSubstr("the_node"));
  EXPECT_THAT(with_shape("ConstantOfShape", {-1}), HasSubstr("the_node"));
  EXPECT_THAT(with_shape("Expand", {huge, huge}), HasSubstr("the_node"));
  EXPECT_THAT(with_shape("Expand", {-3}), HasSubstr("the_node"));
  EXPECT_THAT(with_shape("Tile", {huge}), HasSubstr("the_node"));
  EXPECT_THAT(with_shape("Tile", {-1}), HasSubstr("the_node"));
  EXPECT_THAT(with_shape("Pad", {huge, 0}), HasSubstr("the_node"));
  const auto range = [](double start, double limit, double delta) {
    OneNode one("Range", {"start", "limit", "delta"});
    for (const auto& [name, value] :
         {std::pair{"start", start}, {"limit", limit}, {"delta", delta}}) {
      onnx::TensorProto& tensor = *one.m.graph().add_initializer();
      tensor.set_name(name);
      tensor.set_data_type(onnx::TensorProto::FLOAT);
      tensor.add_float_data(static_cast<float>(value));
    }
    return one.error();
  };
  EXPECT_THAT(range(0, 1e18, 1), HasSubstr("too long"));
  EXPECT_THAT(range(0, 10, 0), HasSubstr("delta"));
  EXPECT_THAT(range(0, std::numeric_limits<double>::quiet_NaN(), 1), HasSubstr("the_node"));
  OneNode slice("Slice", {"x", "s", "e", "a", "t"});
  slice.m.input("x", {4}).integers("s", {0}).integers("e", {4}).integers("a", {0}).integers("t",
                                                                                            {0});
  EXPECT_THAT(slice.error(), HasSubstr("steps"));
}

TEST(BadOperator, InputExtents) {
  ModelMaker m;
  m.input("x", {2, -3}).output("y");
  m.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(error_of([&] { import_graph(m.file(), engine_operators(), with_evaluator()); }),
              HasSubstr("bad extent"));
  ModelMaker free;
  free.free_input("x", {"N", "width", "8"}).output("y");
  free.node("Relu", {"x"}, {"y"});
  const std::string text =
      error_of([&] { import_graph(free.file(), engine_operators(), with_evaluator()); });
  EXPECT_THAT(text, HasSubstr("the key model.bind.width=N; `inspect` takes --bind width=N"));
  ModelMaker quoted;
  quoted.free_input("x", {"N", "seq \"len\"", "8"}).output("y");
  quoted.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(error_of([&] { import_graph(quoted.file(), engine_operators(), with_evaluator()); }),
              HasSubstr(R"(the key model.bind."seq \"len\""=N; `inspect`)"));
  ImportOptions options = with_evaluator();
  options.bind = {{"width", 5}};
  options.batch = 3;
  const ImportResult bound = import_graph(free.file(), engine_operators(), options);
  EXPECT_EQ(bound.graph.type(bound.graph.outputs[0].value).shape, (Shape{3, 5, 8}));
  options.bind = {{"widht", 5}};
  EXPECT_THAT(error_of([&] { import_graph(free.file(), engine_operators(), options); }),
              HasSubstr("one of"));
  options.bind = {{"width", -2}};
  EXPECT_THAT(error_of([&] { import_graph(free.file(), engine_operators(), options); }),
              HasSubstr("0 or more"));
}

TEST(BadOperator, DropoutRatio) {
  for (float ratio : {1.0f, 2.0f, -0.5f, std::numeric_limits<float>::quiet_NaN()}) {
    OneNode one("Dropout", {"x", "ratio", "mode"});
    one.m.input("x", {4});
    onnx::TensorProto& tensor = *one.m.graph().add_initializer();
    tensor.set_name("ratio");
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_float_data(ratio);
    onnx::TensorProto& mode = *one.m.graph().add_initializer();
    mode.set_name("mode");
    mode.set_data_type(onnx::TensorProto::BOOL);
    mode.add_int32_data(1);
    EXPECT_THAT(one.error(), HasSubstr("ratio"));
  }
}

TEST(BadOperator, AllProblemsAtOnce) {
  ModelMaker m;
  m.input("x", {2, 3}).output("y").output("z");
  m.node("ImageDecoder", {"x"}, {"a"}).set_name("first");
  m.node("Relu", {"a"}, {"b"});
  m.node("RegexFullMatch", {"x"}, {"c"}).set_name("second");
  m.node("ImageDecoder", {"c"}, {"d"}).set_name("after");
  m.node("Identity", {"b"}, {"y"});
  m.node("Identity", {"d"}, {"z"});
  const std::string text =
      error_of([&] { import_graph(m.file(), engine_operators(), with_evaluator()); });
  EXPECT_THAT(text, HasSubstr("first"));
  EXPECT_THAT(text, HasSubstr("second"));
  ImportOptions options = with_evaluator();
  options.collect_problems = true;
  const ImportResult result = import_graph(m.file(), engine_operators(), options);
  ASSERT_EQ(result.summary.problems.size(), 2u);
  EXPECT_EQ(result.summary.problems[0].kind, "unsupported_operator");
  EXPECT_EQ(result.summary.problems[0].op, "ImageDecoder");
  EXPECT_EQ(result.summary.problems[0].path, "first");
  EXPECT_EQ(result.summary.operators.at("ImageDecoder"), 2);
}

}  // namespace
}  // namespace tandem
