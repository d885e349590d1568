// Optimizers whose steps consist of operators (Muon, schedule-free AdamW) over 20 steps against
// their published code in double (tests/scripts/composed_optimizers.py): on the kernels of the
// host, on the reference kernels, with gradients of 16 bits, and with steps that a loss scale
// skips.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/train/averages/weights_in_use.h"
#include "engine/train/updates/add_update.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/reference/reference_kernels.h"
#include "tests/harness/folders.h"
#include "tests/harness/operator_case.h"
#include "tests/harness/program_check.h"
#include "tests/harness/test_device.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;

const Json& composed_script() {
  static const Json json =
      Json::parse(read_file(source_folder() + "/tests/data/composed_optimizers.json"));
  return json;
}

struct ComposedCase {
  std::size_t index = 0;
  const Json& json() const { return composed_script()["cases"][index]; }
  std::string name() const { return json()["name"]; }
};
void PrintTo(const ComposedCase& c, std::ostream* stream) { *stream << c.name(); }

constexpr const char* coefficients[] = {"ns_a", "ns_b", "ns_c"};

OptimizerOptions composed_options(const Json& json) {
  OptimizerOptions options(json["kind"].get<std::string>());
  for (const auto& [key, value] : json["options"].items()) {
    if (key == "lr") {
      options.lr = value;
    } else if (key == "betas") {
      options.values.at("beta1") = value[0].get<double>();
      options.values.at("beta2") = value[1].get<double>();
    } else if (key == "ns_coefficients") {
      for (std::size_t i = 0; i < 3; ++i)
        options.values.at(coefficients[i]) = value[i].get<double>();
    } else if (key != "zero_steps" && key != "warmup") {
      OptimizerValue& to = options.values.at(key);
      if (value.is_boolean())
        to = value.get<bool>();
      else if (value.is_string())
        to = value.get<std::string>();
      else
        to = value.get<double>();
    }
  }
  return options;
}

/// The script's pattern(count, k) times a factor.
HostTensor patterned_tensor(const Shape& shape, int k, double factor, DType dtype) {
  HostTensor tensor(TensorType{DType::float64, shape});
  std::int64_t i = 0;
  for (double& x : tensor.as<double>())
    x = factor * static_cast<double>((37 * i++ + 11 * k) % 101 - 50) / 64;
  return tensor.converted(dtype);
}

class ComposedOptimizers : public ::testing::TestWithParam<ComposedCase> {
 protected:
  /// The update of one parameter, which a product reads as [inputs, outputs] where the case says
  /// so.
  Graph graph(DType gradient) const {
    GraphBuilder g(operators_);
    State weight;
    weight.name = "weight";
    weight.path = "layer:weight";
    weight.trainable = true;
    weight.start = patterned_tensor(shape_, 0, 1, DType::float32);
    weight.initial = g.state(weight);
    if (json_["is_input_first"]) {
      const ValueId x = g.input("x", {DType::float32, {2, shape_[0]}});
      g.set_scope({"layer.MatMul", Phase::forward, {}});
      g.output("y", g.matmul(x, weight.initial));
    }
    UpdateRequest request{.parameter = weight,
                          .gradient = g.input("gradient", {gradient, shape_}),
                          .lr = g.input("lr", {DType::float32, {}}),
                          .options = options_};
    const UpdateScalars scalars{g.input("step", {DType::int64, {}}),
                                g.input("scale", {DType::float32, {}}),
                                g.input("skip", {DType::boolean, {}})};
    const ValueId left = Updates(g).add(request, scalars);
    EXPECT_FALSE(static_cast<bool>(left)) << "it writes the parameter itself";
    return g.finish();
  }

  bool is_zero(int step) const {
    const Json zeros = json_["options"].value("zero_steps", Json::array());
    return std::find(zeros.begin(), zeros.end(), step) != zeros.end();
  }

  /// The states after all steps. Where `skips`, before each step comes one of infinite gradients
  /// that is skipped.
  StateStore trained(Device& device, DType gradient, bool skips = false) const {
    OwnProgram own = make_program(graph(gradient), operators_, device);
    const double warmup = json_["options"].value("warmup", 1.0);
    std::uint64_t ticket = 0;
    for (int step = 1; step <= composed_script()["steps"]; ++step) {
      const double rate = options_.lr * std::min<double>(step, warmup) / warmup;
      const auto run = [&](float scale, bool skip) {
        Feeds feeds{
            {"gradient", patterned_tensor(shape_, 5 * step, is_zero(step) ? 0 : 1, gradient)},
            {"lr", HostTensor::from<float>({}, {static_cast<float>(rate)})},
            {"step", HostTensor::from<std::int64_t>({}, {step})},
            {"scale", HostTensor::from<float>({}, {scale})},
            {"skip", HostTensor::from<bool>({}, {skip})}};
        if (json_["is_input_first"])
          feeds.emplace_back("x", HostTensor(TensorType{DType::float32, {2, shape_[0]}}));
        run_step(*own.program, feeds, ticket++);
      };
      if (skips) run(std::numeric_limits<float>::infinity(), true);
      run(0.25f, false);
    }
    own.program.reset();
    return std::move(own.states);
  }

  HostTensor expected(const Json& values) const {
    return HostTensor::from<double>(shape_, values.get<std::vector<double>>());
  }

  void expect_script(StateStore& states, double tolerance) const {
    EXPECT_EQ(compare(states.read("weight"), expected(json_["w"]), tolerance), "");
    for (const auto& [name, values] : json_["states"].items())
      EXPECT_EQ(compare(states.read("weight/" + name), expected(values), tolerance), "") << name;
    if (!json_.contains("used")) return;
    const HostTensor before = states.read("weight");
    {
      const WeightsInUse in_use(states, Weights::trained);
      EXPECT_EQ(compare(states.read("weight"), expected(json_["used"]), tolerance), "");
    }
    EXPECT_EQ(compare(states.read("weight"), before, 0), "");
  }

  const OperatorSet operators_ = all_operators();
  const Json& json_ = GetParam().json();
  const OptimizerOptions options_ = composed_options(json_);
  const Shape shape_ = json_["shape"].get<Shape>();
  std::unique_ptr<Device> cpu_ = make_cpu_device(2), plain_ = make_test_device(reference_kernels()),
                          fast_ = make_test_device(reference_kernels_as_fast());
};

TEST_P(ComposedOptimizers, TakeTheSameSteps) {
  for (Device* device : {cpu_.get(), plain_.get(), fast_.get()}) {
    StateStore states = trained(*device, DType::float32);
    expect_script(states, 1e-5);
  }
}

// The pattern has six bits, so that both types hold every gradient.
TEST_P(ComposedOptimizers, TakeGradientsOf16Bits) {
  for (const DType type : {DType::float16, DType::bfloat16}) {
    StateStore states = trained(*cpu_, type);
    expect_script(states, 1e-5);
  }
}

TEST_P(ComposedOptimizers, LeaveOutWhatIsSkipped) {
  for (Device* device : {cpu_.get(), plain_.get()}) {
    StateStore states = trained(*device, DType::float32, true);
    const StateStore without = trained(*device, DType::float32);
    for (const std::string& name : without.names())
      EXPECT_EQ(compare(states.read(name), without.read(name), 0), "") << name;
  }
}

std::vector<ComposedCase> composed_cases() {
  std::vector<ComposedCase> all;
  for (std::size_t i = 0; i < composed_script()["cases"].size(); ++i) all.push_back({i});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Kinds, ComposedOptimizers, ::testing::ValuesIn(composed_cases()),
                         [](const auto& info) { return info.param.name(); });

// Every setting of a kind without formulas for elements is compared with the published code.
TEST(ComposedOptimizersTest, EverySettingHasACase) {
  for (const OptimizerKind& kind : all_optimizers()) {
    if (find_update_kind(kind.choose({}).op)->compose == nullptr) continue;
    for (const OptimizerSetting& setting : kind.settings) {
      const std::string key(setting.info.list.empty() ? setting.info.key : setting.info.list);
      const auto& cases = composed_script()["cases"];
      EXPECT_TRUE(std::any_of(cases.begin(), cases.end(),
                              [&](const Json& json) {
                                return json["kind"] == kind.name && json["options"].contains(key);
                              }))
          << kind.name << " " << key;
    }
  }
}

}  // namespace
}  // namespace tandem::testing
