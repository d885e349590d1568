// Optimizers over 50 steps against torch.optim (tests/scripts/torch_optimizers.py): the parameter
// and every state that PyTorch names, on every kernel, in float32 and float64. Options that a case
// does not set have both libraries' defaults.
#include <nlohmann/json.hpp>
#include <set>

#include "engine/formats/files.h"
#include "engine/operators/update_kind.h"
#include "engine/optimizers/optimizer.h"
#include "tests/harness/folders.h"
#include "tests/operators/single_node.h"

namespace tandem::testing {
namespace {

using Json = nlohmann::json;
using Tensors = std::vector<HostTensor>;

const Json& torch_script() {
  static const Json json =
      Json::parse(read_file(source_folder() + "/tests/data/torch_optimizers.json"));
  return json;
}

OptimizerOptions options_of(const Json& json) {
  OptimizerOptions options(json["kind"].get<std::string>());
  for (const auto& [key, value] : json["options"].items()) {
    if (key == "lr")
      options.lr = value;
    else if (key == "betas")
      options.values.at("beta1") = value[0].get<double>(),
      options.values.at("beta2") = value[1].get<double>();
    else if (value.is_boolean())
      options.values.at(key) = value.get<bool>();
    else
      options.values.at(key) = value.get<double>();
  }
  return options;
}

HostTensor tensor_of(const Json& values, DType dtype, const Shape& shape) {
  return HostTensor::from<double>(shape, values.get<std::vector<double>>()).converted(dtype);
}

struct Case {
  std::size_t index = 0;
  const Json& json() const { return torch_script()["cases"][index]; }
};
void PrintTo(const Case& c, std::ostream* stream) { *stream << c.json()["name"]; }

class TorchOptimizers : public ::testing::TestWithParam<Case> {
 protected:
  TorchOptimizers()
      : options_(options_of(GetParam().json())),
        choice_(options_.kind->choose(options_.values)),
        kind_(*find_update_kind(choice_.op)),
        shaped_(GetParam().json().contains("shape")),
        given_(shaped_ ? torch_script()["larger"] : torch_script()),
        shape_(shaped_ ? GetParam().json()["shape"].get<Shape>()
                       : Shape{static_cast<std::int64_t>(given_["start"].size())}) {}

  /// Master, gradient, states, scalars.
  Tensors inputs(const Tensors& tensors, std::int64_t step, DType dtype) const {
    Tensors all{tensors[0],
                tensor_of(given_["gradients"][static_cast<std::size_t>(step) - 1], dtype, shape_)};
    all.insert(all.end(), tensors.begin() + 1, tensors.end());
    all.push_back(HostTensor::from<double>({}, {options_.lr}).converted(dtype));
    all.push_back(HostTensor::from<std::int64_t>({}, {step}));
    all.push_back(HostTensor::from<double>({}, {1.0}).converted(dtype));
    all.push_back(HostTensor::from<bool>({}, {false}));
    return all;
  }
  Tensors start(DType dtype) const {
    Tensors tensors{tensor_of(given_["start"], dtype, shape_)};
    for (std::size_t k = 0; k < kind_.states.size(); ++k) {
      if (kind_.keeps_state(k, choice_.settings, shape_))
        tensors.emplace_back(TensorType{dtype, kind_.state_shape(k, shape_)});
      else
        tensors.emplace_back();
    }
    return tensors;
  }

  OptimizerOptions options_;
  UpdateChoice choice_;
  const UpdateKind& kind_;
  bool shaped_;
  const Json& given_;  // start and gradients
  Shape shape_;
};

TEST_P(TorchOptimizers, TakeTheSameSteps) {
  const Json& json = GetParam().json();
  for (const DType dtype : {DType::float32, DType::float64}) {
    const Graph first = single_node(choice_.op, inputs(start(dtype), 1, dtype), choice_.settings);
    each_kernel(first, [&](const Kernel& kernel) {
      SCOPED_TRACE(kernel.name + " " + std::string(name_of(dtype)));
      Tensors tensors = start(dtype);
      for (std::size_t step = 1; step <= given_["gradients"].size(); ++step) {
        const Tensors given = inputs(tensors, static_cast<std::int64_t>(step), dtype);
        const Graph graph = single_node(choice_.op, given, choice_.settings);
        const Tensors next = run_node(kernel, graph, graph.nodes[0], given);
        for (std::size_t k = 0; k < tensors.size(); ++k) {
          if (tensors[k].data() != nullptr) tensors[k] = next[k];
        }
      }
      const double tolerance = dtype == DType::float32 ? 1e-5 : 1e-12;
      EXPECT_EQ(compare(tensors[0], tensor_of(json["w"], DType::float64, shape_), tolerance), "");
      std::size_t compared = 0;
      for (std::size_t k = 0; k < kind_.states.size(); ++k) {
        const auto expected = json["states"].find(kind_.states[k].name);
        if (expected == json["states"].end()) continue;
        EXPECT_EQ(compare(tensors[1 + k],
                          tensor_of(*expected, DType::float64, tensors[1 + k].shape()), tolerance),
                  "")
            << kind_.states[k].name;
        ++compared;
      }
      EXPECT_EQ(compared, json["states"].size());
    });
  }
}

std::vector<Case> torch_optimizer_cases() {
  std::vector<Case> all;
  for (std::size_t i = 0; i < torch_script()["cases"].size(); ++i) all.push_back({i});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Kinds, TorchOptimizers, ::testing::ValuesIn(torch_optimizer_cases()),
                         [](const auto& info) {
                           return info.param.json()["name"].template get<std::string>();
                         });

// Every kind that claims to follow PyTorch is compared with it, with each of its settings.
TEST(TorchOptimizersTest, EveryKindOfPyTorchHasCases) {
  std::set<std::pair<std::string, std::string>> tried;
  for (const Json& json : torch_script()["cases"]) {
    tried.insert({json["kind"], ""});
    for (const auto& [key, value] : json["options"].items()) tried.insert({json["kind"], key});
  }
  for (const OptimizerKind& kind : all_optimizers()) {
    if (!kind.source.starts_with("PyTorch's")) continue;
    EXPECT_TRUE(tried.contains({std::string(kind.name), ""})) << kind.name;
    for (const OptimizerSetting& setting : kind.settings) {
      const std::string_view key = setting.info.list.empty() ? setting.info.key : setting.info.list;
      // PyTorch does not have these.
      if (key == "epsilon_form" || key == "bias_correction" || key == "initial_accumulator")
        continue;
      EXPECT_TRUE(tried.contains({std::string(kind.name), std::string(key)}))
          << kind.name << " " << key;
    }
  }
}

}  // namespace
}  // namespace tandem::testing
