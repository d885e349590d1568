// Gradients of ONNX operators that import builds from several of the engine's, in double, by
// central differences, each over three shapes at least.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "engine/formats/files.h"
#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "engine/graph/rewrite.h"
#include "importer/file/tensor_data.h"
#include "importer/operators/all.h"
#include "tests/harness/folders.h"
#include "tests/importer/composed_cases.h"
#include "tests/importer/differences.h"
#include "tests/importer/support.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;
using Kind = ComposedInput::Kind;

HostTensor value_of(const ComposedInput& input, std::mt19937_64& random) {
  if (!input.values.empty()) {
    const DType dtype = input.kind == Kind::integers   ? DType::int64
                        : input.kind == Kind::booleans ? DType::boolean
                        : input.kind == Kind::window   ? DType::float64
                                                       : DType::float32;
    return HostTensor::from(input.shape, input.values).converted(dtype);
  }
  HostTensor tensor(TensorType{DType::float64, input.shape});
  const auto numbers = tensor.as<double>();
  std::uniform_real_distribution<double> unit(0, 1);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (input.kind == Kind::positive) numbers[i] = 0.5 + 1.5 * unit(random);
    if (input.kind == Kind::numbers)
      numbers[i] = (unit(random) < 0.5 ? -1 : 1) * (0.05 + 0.9 * unit(random));
    if (input.kind == Kind::apart) numbers[i] = 0.02 * static_cast<double>(i) - 0.1;
  }
  if (input.kind == Kind::apart) std::shuffle(numbers.begin(), numbers.end(), random);
  return tensor;
}

bool has_gradient(const ComposedInput& input) {
  return input.kind == Kind::numbers || input.kind == Kind::positive || input.kind == Kind::apart;
}

struct Imported {
  Graph graph;  // outputs: y, then the gradient of each input that has one
  NamedTensors feeds;
  HostTensor dy;
  std::vector<std::size_t> inputs;  // those of `feeds` that have a gradient
};

Imported imported_with_gradients(const ComposedCase& c) {
  std::mt19937_64 random(std::hash<std::string>()(c.op));
  ModelMaker m(c.opset);
  ImportOptions options = with_evaluator();
  Imported result;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const ComposedInput& input = c.inputs[i];
    names.push_back(input.kind == Kind::absent ? "" : fmt::format("x{}", i));
    if (names.back().empty()) continue;
    const HostTensor value = value_of(input, random);
    m.input(names.back(), value.shape(), importer::dtype_to_onnx(value.dtype()));
    if (has_gradient(input)) result.inputs.push_back(result.feeds.size());
    result.feeds.emplace_back(names.back(), value);
    if (!has_gradient(input)) options.constants.push_back(result.feeds.back());
  }
  onnx::NodeProto& node = m.node(c.op, names, {"y"});
  for (const auto& [name, value] : c.attributes)
    std::visit([&, &name = name](const auto& known) { set(node, name, known); }, value);
  m.output("y");
  GraphBuilder builder(engine_operators(),
                       import_graph(m.file(), engine_operators(), options).graph);
  const ValueId y = builder.graph().outputs[0].value;
  result.dy = HostTensor(TensorType{DType::float64, builder.shape(y)});
  std::uniform_real_distribution<double> unit(-1, 1);
  for (double& number : result.dy.as<double>()) number = unit(random);
  std::vector<ValueId> wanted;
  for (const std::size_t i : result.inputs)
    wanted.push_back(builder.graph().find_input(result.feeds[i].first)->value);
  const std::vector<GradientSeed> seeds{{y, builder.constant(result.dy)}};
  const std::vector<ValueId> gradients = add_gradients(builder, seeds, wanted);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const TensorType& type = result.feeds[result.inputs[i]].second.type();
    builder.output(fmt::format("gradient {}", i),
                   gradients[i] ? gradients[i] : builder.filled(0, type));
  }
  result.graph = builder.finish();
  verify(result.graph);
  return result;
}

// sum(dy y)
double loss_of(const Graph& forward, const Imported& of, const NamedTensors& feeds) {
  const HostTensor y = run_graph(forward, feeds)[0].second;
  double sum = 0;
  for (std::int64_t i = 0; i < y.type().elements(); ++i) sum += y.number(i) * of.dy.number(i);
  return sum;
}

void check_against_differences(const ComposedCase& c) {
  const Imported of = imported_with_gradients(c);
  Graph forward = of.graph;
  forward.outputs.resize(1);
  forward = remove_dead(forward, engine_operators());
  const NamedTensors results = run_graph(of.graph, of.feeds);
  ASSERT_EQ(results[0].second.dtype(), DType::float64);
  ASSERT_FALSE(of.inputs.empty());
  for (std::size_t i = 0; i < of.inputs.size(); ++i) {
    const HostTensor& gradient = results[i + 1].second;
    NamedTensors moved = of.feeds;
    HostTensor& x = moved[of.inputs[i]].second;
    x = x.clone();
    ASSERT_EQ(gradient.shape(), x.shape());
    for (std::size_t k = 0; k < x.as<double>().size(); ++k) {
      double& number = x.as<double>()[k];
      const double before = number, step = 1e-5;
      number = before + step;
      const double above = loss_of(forward, of, moved);
      number = before - step;
      const double below = loss_of(forward, of, moved);
      number = before;
      const double slope = (above - below) / (2 * step);
      EXPECT_NEAR(gradient.number(static_cast<std::int64_t>(k)), slope,
                  1e-6 * std::max(1.0, std::fabs(slope)))
          << of.feeds[of.inputs[i]].first << ", element " << k;
    }
  }
}

std::string title(const ComposedCase& c) {
  std::string text = c.op;
  for (const ComposedInput& input : c.inputs) text += " " + to_string(input.shape);
  return text;
}

TEST(ComposedGradients, AreThoseOfDifferences) {
  for (const ComposedCase& c : composed_cases()) {
    SCOPED_TRACE(title(c));
    try {
      check_against_differences(c);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

// Operators whose gradients are compared only with PyTorch's: how many shapes there are.
std::map<std::string, std::set<std::string>> shapes_with_pytorch() {
  std::map<std::string, std::set<std::string>> shapes;
  for (const char* file : {"recurrent.json", "transformers.json"}) {
    const Json all = Json::parse(read_file(source_folder() + "/tests/data/" + std::string(file)));
    for (const Json& json : all.at("cases")) {
      std::string text;
      for (const Json& entry : json.at("inputs"))
        text += entry.is_null() ? "-" : entry.at("shape").dump();
      shapes[json.at("op")].insert(text);
    }
  }
  return shapes;
}

// Operators that have no gradient of their own.
const std::map<std::string, std::string> no_own_gradient{
    {"constants, integers and truths",
     "Constant ConstantOfShape Shape Size Range NonZero Unique NonMaxSuppression HannWindow "
     "HammingWindow BlackmanWindow MelWeightMatrix ArgMax ArgMin Hardmax EyeLike TfIdfVectorizer "
     "RandomUniform RandomNormal Bernoulli Multinomial"},
    {"what is inside has it",
     "If Loop Scan SplitToSequence SequenceAt SequenceConstruct SequenceEmpty SequenceInsert "
     "SequenceErase SequenceLength SequenceMap Optional OptionalHasElement OptionalGetElement "
     "ConcatFromSequence"},
    {"passed on as it is, whatever is rounded: tests/importer/quantization_test.cpp",
     "QuantizeLinear DequantizeLinear DynamicQuantizeLinear MatMulInteger ConvInteger "
     "QLinearMatMul QLinearConv"},
    {"Cast", "CastLike"}};

TEST(ComposedGradients, EachOperatorHasThreeShapes) {
  std::map<std::string, std::set<std::string>> shapes = shapes_with_pytorch();
  for (const ComposedCase& c : composed_cases()) shapes[c.op].insert(title(c));
  std::set<std::string> without;
  for (const auto& [reason, names] : no_own_gradient) {
    std::istringstream stream(names);
    for (std::string name; stream >> name;) without.insert(name);
  }
  for (const importer::Lowering& lowering : importer::all_lowerings()) {
    const std::string op = lowering.op;
    // If the engine has an operator of this name, its own cases check the gradient
    // (tests/operators).
    if (without.count(op) > 0 || engine_operators().find(op) != nullptr) continue;
    EXPECT_GE(shapes[op].size(), 3u) << op << ": its gradient is checked over fewer shapes";
  }
  for (const std::string& op : without) {
    EXPECT_NE(importer::find_lowering(op), nullptr) << op << " is no operator";
    EXPECT_EQ(shapes.count(op), 0u) << op << " has a gradient";
  }
}

// Mean and InvStdDev of LayerNormalization are outputs like its y.
TEST(LayerNormalizationStatistics, HaveGradients) {
  const std::string head = R"(<ir_version: 10, opset_import: ["": 20]>
m (double[3, 4] x, double[4] scale) => (double y)
{
)";
  const std::string mean =
      "  n, mean, d = LayerNormalization (x, scale)\n"
      "  t = Exp (mean)\n";
  const std::string deviation = "  n, m, d = LayerNormalization (x, scale)\n  t = Log (d)\n";
  const std::string all = R"(  n, mean, d = LayerNormalization (x, scale)
  a = Mul (n, d)
  b = Add (a, mean)
  t = Tanh (b)
)";
  const std::string sums = R"(  of_rows = ReduceSum <keepdims = 0> (t)
  of_scale = ReduceSum <keepdims = 0> (scale)
  y = Add (of_rows, of_scale)
})";
  const NamedTensors feeds{
      {"x", HostTensor::from<double>({3, 4}, {1, 2, 4, 8, -1, 0, 0.5, 3, 2, -2, 1, 0.25})},
      {"scale", HostTensor::from<double>({4}, {1, 2, -1, 0.5})}};
  for (const std::string& body : {mean, deviation, all}) {
    SCOPED_TRACE(body);
    expect_gradients(import_graph(OnnxFile::from_bytes(model_bytes(head + body + sums)),
                                  engine_operators(), with_evaluator())
                         .graph,
                     feeds);
  }
}

}  // namespace
}  // namespace tandem::testing
