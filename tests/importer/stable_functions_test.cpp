// Functions that exporters take apart, in float32 at extreme values: results and slopes are those
// of PyTorch's own functions in float64 (tests/scripts/stable_functions.py).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/gradient/gradient.h"
#include "engine/graph/builder.h"
#include "engine/passes/pass.h"
#include "tests/harness/folders.h"
#include "tests/importer/json_nodes.h"
#include "tests/importer/support.h"

namespace tandem::testing {
namespace {

using StableJson = nlohmann::json;

ModelMaker stable_model(const StableJson& json) {
  ModelMaker m;
  m.input("x", json.at("x").at("shape").get<Shape>()).output("y");
  for (const auto& [name, value] : json.at("constants").items()) {
    if (value.is_array()) {
      m.integers(name, value.get<std::vector<std::int64_t>>());
    } else {
      set(m.node("Constant", {}, {name}), "value_float", value.get<double>());
    }
  }
  for (const StableJson& each : json.at("nodes")) {
    onnx::NodeProto& node = m.node(each.at("op"), each.at("inputs").get<std::vector<std::string>>(),
                                   {each.at("output").get<std::string>()});
    for (const auto& [name, value] : each.at("attributes").items())
      set_attribute(node, name, value);
  }
  return m;
}

void expect_numbers(const HostTensor& got, const StableJson& wanted, const char* what) {
  ASSERT_EQ(got.type().elements(), static_cast<std::int64_t>(wanted.size())) << what;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double number = got.number(static_cast<std::int64_t>(i)), want = wanted[i];
    EXPECT_NEAR(number, want, 2e-6 * std::max(1.0, std::fabs(want))) << what << ", element " << i;
    // y (1 - y) of a sigmoid that rounds to 1 is 0 in float32, in PyTorch as well.
    const bool rounds_to_zero = number == 0 && std::string_view(what) == "dx" && want < 1e-7;
    if (want != 0 && std::fabs(want) < 1e-3 && std::fabs(want) > 1e-30 && !rounds_to_zero) {
      EXPECT_NEAR(number / want, 1, 1e-3) << what << ", element " << i;
    }
  }
}

TEST(StableFunctions, AreThoseOfPyTorch) {
  std::ifstream file(source_folder() + "/tests/data/stable_functions.json");
  for (const StableJson& json : StableJson::parse(file)) {
    SCOPED_TRACE(json.at("name").get<std::string>());
    Graph forward =
        import_graph(stable_model(json).file(), engine_operators(), with_evaluator()).graph;
    PassContext context{engine_operators(), reference_evaluator(), {}, {}};
    GraphBuilder builder(engine_operators(), run_passes(std::move(forward), context));
    const ValueId y = builder.graph().outputs[0].value;
    const ValueId x = builder.graph().find_input("x")->value;
    StableJson dy = json.at("dy");
    dy["type"] = "float32";
    const GradientSeed seeds[] = {{y, builder.constant(tensor_of(dy))}};
    const ValueId wanted[] = {x};
    const std::vector<ValueId> dx = add_gradients(builder, seeds, wanted);
    builder.output("dx", dx[0]);
    StableJson given = json.at("x");
    given["type"] = "float32";
    const NamedTensors results = run_graph(builder.finish(), {{"x", tensor_of(given)}});
    expect_numbers(results[0].second, json.at("y"), "y");
    expect_numbers(results[1].second, json.at("dx"), "dx");
  }
}

// Numbers in range give what the operators of the file give.
TEST(StableFunctions, AreTheOperatorsOfTheFileInRange) {
  std::ifstream file(source_folder() + "/tests/data/stable_functions.json");
  for (const StableJson& json : StableJson::parse(file)) {
    SCOPED_TRACE(json.at("name").get<std::string>());
    const Graph plain =
        import_graph(stable_model(json).file(), engine_operators(), with_evaluator()).graph;
    PassContext context{engine_operators(), reference_evaluator(), {}, {}};
    const Graph stable = run_passes(plain, context);
    HostTensor x(TensorType{DType::float32, json.at("x").at("shape").get<Shape>()});
    float next = 0.3f;
    for (float& each : x.as<float>()) each = next = std::fmod(next * 7.3f, 3.0f);
    const HostTensor want = run_graph(plain, {{"x", x}})[0].second;
    const HostTensor got = run_graph(stable, {{"x", x}})[0].second;
    ASSERT_EQ(got.type(), want.type());
    for (std::int64_t i = 0; i < want.type().elements(); ++i)
      EXPECT_NEAR(got.number(i), want.number(i), 1e-5) << i;
  }
}

}  // namespace
}  // namespace tandem::testing
