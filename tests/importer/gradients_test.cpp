// Operators as import makes them, in double on reference kernels: results and gradients are
// PyTorch's (tests/scripts/onnx_gradients.py, signal_gradients.py, recurrent_expectations.py,
// transformer_expectations.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "importer/file/tensor_data.h"
#include "importer/operators/all.h"
#include "tests/harness/folders.h"
#include "tests/importer/json_nodes.h"
#include "tests/importer/support.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;

// Differences are relative to the largest number; `what` names what differs.
void expect_near_numbers(const HostTensor& got, const std::vector<double>& wanted,
                         const std::string& what) {
  ASSERT_EQ(got.type().elements(), static_cast<std::int64_t>(wanted.size())) << what;
  double largest = 1;
  for (double value : wanted) largest = std::max(largest, std::fabs(value));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double number = got.number(static_cast<std::int64_t>(i));
    // ONNX's attributes are float32.
    EXPECT_LE(std::fabs(number - wanted[i]), 1e-7 * largest)
        << what << ", element " << i << ": " << number << " instead of " << wanted[i];
  }
}

/// One for each output of the operator: shape, y and dy; null where it is absent.
std::vector<Json> outputs_of(const Json& json) {
  if (!json.contains("outputs")) return {json};
  return json.at("outputs").get<std::vector<Json>>();
}

struct GradientCase {
  ModelMaker model;
  ImportOptions options = with_evaluator();
  NamedTensors feeds;

  explicit GradientCase(const Json& json) : model(json.at("opset").get<int>()) {
    const std::string op = json.at("op");
    std::vector<std::string> names;
    for (const Json& entry : json.at("inputs")) {
      const std::size_t i = names.size();
      names.push_back(entry.is_null() ? "" : fmt::format("x{}", i));
      if (entry.is_null()) continue;
      const HostTensor tensor = tensor_of(entry);
      model.input(names.back(), tensor.shape(), importer::dtype_to_onnx(tensor.dtype()));
      feeds.emplace_back(names.back(), tensor);
      if (importer::is_setting(op, i)) options.constants.push_back(feeds.back());
    }
    std::vector<std::string> results;
    for (const Json& output : outputs_of(json)) {
      results.push_back(output.is_null() ? "" : fmt::format("y{}", results.size()));
    }
    const std::vector<std::string> wanted = results;
    if (op == "TopK") results.push_back("places");
    onnx::NodeProto& node = model.node(op, names, results);
    for (const auto& [name, value] : json.at("attributes").items()) {
      set_attribute(node, name, value);
    }
    for (const std::string& name : wanted) {
      if (!name.empty()) model.output(name);
    }
  }

  Graph imported() const { return import_graph(model.file(), engine_operators(), options).graph; }
};

void check_against_pytorch(const Json& json) {
  GradientCase c(json);
  GraphBuilder builder(engine_operators(), c.imported());
  std::vector<GradientSeed> seeds;
  std::vector<Json> outputs;
  for (Json& output : outputs_of(json)) {
    if (output.is_null()) continue;
    const ValueId y = builder.graph().outputs[outputs.size()].value;
    EXPECT_EQ(builder.shape(y), output.at("shape").get<Shape>());
    const HostTensor dy =
        HostTensor::from(builder.shape(y), output.at("dy").get<std::vector<double>>());
    seeds.push_back({y, builder.constant(dy)});
    outputs.push_back(std::move(output));
  }
  std::vector<ValueId> wanted;
  std::vector<const Json*> expected;
  std::size_t place = 0;
  for (const Json& entry : json.at("inputs")) {
    const NamedValue* input = builder.graph().find_input(fmt::format("x{}", place++));
    if (entry.is_null() || !entry.contains("gradient")) continue;
    ASSERT_NE(input, nullptr);
    wanted.push_back(input->value);
    expected.push_back(&entry.at("gradient"));
  }
  const std::vector<ValueId> gradients = add_gradients(builder, seeds, wanted);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    ASSERT_TRUE(gradients[i]) << "no gradient for input " << i;
    builder.output(fmt::format("gradient {}", i), gradients[i]);
  }
  const Graph graph = builder.finish();
  ASSERT_NO_THROW(verify(graph)) << to_text(graph);
  const NamedTensors results = run_graph(graph, c.feeds);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    expect_near_numbers(results[i].second, outputs[i].at("y").get<std::vector<double>>(),
                        results[i].first);
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, gradient] = results[outputs.size() + i];
    expect_near_numbers(gradient, expected[i]->get<std::vector<double>>(), name);
  }
}

void check_all(const std::string& file) {
  const Json all = Json::parse(read_file(source_folder() + "/tests/data/" + file));
  for (const Json& json : all.at("cases")) {
    SCOPED_TRACE(json.at("op").get<std::string>() + ": " + json.at("name").get<std::string>());
    try {
      check_against_pytorch(json);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(OnnxGradients, AreThoseOfPyTorch) { check_all("onnx_gradients.json"); }

TEST(OnnxGradients, OfSignalsAreThoseOfPyTorch) { check_all("signal_gradients.json"); }

TEST(OnnxGradients, OfTransformersAreThoseOfPyTorch) { check_all("transformers.json"); }

TEST(OnnxGradients, OfRecurrentLayersAreThoseOfPyTorch) { check_all("recurrent.json"); }

}  // namespace
}  // namespace tandem::testing
