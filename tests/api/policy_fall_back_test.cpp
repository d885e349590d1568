// need = "prefer" from the policy file to the numbers of a step, on an accelerator that lacks
// kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "api/policy/policy_case.h"
#include "engine/runtime/program.h"
#include "kernels/emulated/emulated_device.h"
#include "placement/report/placement_report.h"
#include "tests/harness/folders.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

/// An emulated device whose kernels of some operators refuse, with these reasons. An empty reason:
/// there are no such kernels.
class LackingDevice final : public Device {
 public:
  LackingDevice(const EmulatedOptions& options, const std::map<std::string, std::string>& lacking)
      : device_(make_emulated_device(options)) {
    for (Kernel kernel : device_->kernels()) {
      const auto place = lacking.find(kernel.op);
      if (place != lacking.end() && place->second.empty()) continue;
      if (place != lacking.end()) {
        kernel.refuse = [reason = place->second](
                            const KernelRequest&) -> std::optional<std::string> { return reason; };
      }
      kernels_.push_back(std::move(kernel));
    }
  }
  const std::string& name() const override { return device_->name(); }
  const DeviceFacts& facts() const override { return device_->facts(); }
  const KernelList& kernels() const override { return kernels_; }
  std::size_t memory_bytes() const override { return device_->memory_bytes(); }
  DeviceCounters counters() const override { return device_->counters(); }
  std::unique_ptr<Memory> allocate(std::size_t bytes) override { return device_->allocate(bytes); }
  std::unique_ptr<Memory> reserve(std::size_t bytes) override { return device_->reserve(bytes); }
  std::unique_ptr<Stream> make_stream(StreamKind kind, const std::string& name) override {
    return device_->make_stream(kind, name);
  }
  std::unique_ptr<Event> make_event() override { return device_->make_event(); }
  void to_device(void* to, const void* from, std::size_t bytes) override {
    device_->to_device(to, from, bytes);
  }
  void to_host(void* to, const void* from, std::size_t bytes) override {
    device_->to_host(to, from, bytes);
  }
  void synchronize() override { device_->synchronize(); }
  void on_lane(const std::function<void()>& f) override { device_->on_lane(f); }
  LaneMonitor* monitor() const override { return device_->monitor(); }

 private:
  std::unique_ptr<Device> device_;
  KernelList kernels_;
};

class PolicyFallBackTest : public ::testing::Test {
 protected:
  PolicyOptions options(const std::string& rules, const std::string& network = "mlp") const {
    const std::string data = source_folder() + "/tests/data/parity/" + network;
    std::ifstream file(data + ".json");
    const Json fixture = Json::parse(file);
    PolicyOptions options;
    options.model = data + "_torchscript.onnx";
    options.bind = {{"batch", fixture["batch"].get<std::int64_t>()}};
    options.overrides = {"optimizer.kind=\"adam\"",
                         "loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", logits=" +
                             fixture["loss"]["logits"].dump() +
                             ", labels=" + fixture["loss"]["labels"].dump() + "}]"};
    options.policy = folder_ / "policy.toml";
    std::ofstream(options.policy) << "policy = 1\nrules = [\n" + rules + "\n]\n";
    return options;
  }
  static PlacingArguments lacking(std::map<std::string, std::string> operators) {
    PlacingArguments placing;
    placing.devices = {"gpu=emulated:0"};
    placing.make_device = [operators = std::move(operators)](
                              const ResolvedDevice& device,
                              const std::shared_ptr<OrderChecker>& monitor) {
      EmulatedOptions options;
      options.name = device.name;
      options.monitor = monitor;
      return std::make_unique<LackingDevice>(options, operators);
    };
    return placing;
  }
  static std::string error_of(const PolicyOptions& options, const PlacingArguments& placing) {
    try {
      PolicyCase(options, placing).resolved();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "no error";
  }

  testing::TemporaryFolder folder_;
};

const std::map<std::string, std::string> no_relu{{"Relu", "takes no float32"}};
const char* const prefer_gpu = R"({ at = "**", on = "gpu", need = "prefer" },)";

/// The loss of the last of three steps.
float loss_of(PolicyCase& of) {
  const TrainingGraph training = of.training();
  const std::vector<Device*>& devices = of.devices();
  StateStore states;
  Program program(training.graph, of.placed().place(training.graph), of.engine().operators, devices,
                  states, make_arenas(), {});
  StepContext context;
  float loss = 0;
  for (std::uint64_t ticket = 0; ticket < 3; ++ticket) {
    for (std::size_t i = 0; i < training.graph.inputs.size(); ++i) {
      const TensorType& type = training.graph.type(training.graph.inputs[i].value);
      void* slot = program.input_slot(static_cast<int>(i), ticket);
      std::memset(slot, 0, type.bytes());
      if (type.dtype != DType::float32) {
        if (training.graph.inputs[i].name == step_input) *static_cast<std::int64_t*>(slot) = 1;
        continue;
      }
      for (std::int64_t e = 0; e < type.elements(); ++e) {
        static_cast<float*>(slot)[e] = 0.01f + 0.001f * static_cast<float>(e % 37);
      }
    }
    context.step = ticket + 1;
    program.run(context, ticket);
    for (std::size_t o = 0; o < training.graph.outputs.size(); ++o) {
      if (training.graph.outputs[o].name != "loss") continue;
      for (Device* device : devices) device->synchronize();
      loss = *static_cast<const float*>(program.output(static_cast<int>(o), ticket));
    }
  }
  check_order(of.engine());
  return loss;
}

TEST_F(PolicyFallBackTest, TheStepComputesTheSame) {
  PolicyCase fallen(options(prefer_gpu), lacking(no_relu));
  PolicyCase all_cpu(options(R"({ at = "**", on = "cpu" },)"), lacking({}));
  const float here = loss_of(all_cpu), there = loss_of(fallen);
  EXPECT_GT(here, 0);
  EXPECT_NEAR(there, here, 1e-5f * here);
  int relus = 0;
  const PlannedStep step = fallen.plan();
  const Lowered& lowered = step.micro_batches.back().program.lowered;
  for (const PlacedRow& row : placed_rows(lowered, fallen.resolved())) {
    if (row.path.ends_with("Relu") && row.op != "Transfer") {
      EXPECT_EQ(row.device, 0) << row.path;
      ++relus;
    }
  }
  EXPECT_GE(relus, 2) << "forward and backward";
}

TEST_F(PolicyFallBackTest, CheckListsWhatFellBack) {
  PolicyCase of(options(prefer_gpu), lacking(no_relu));
  const Report report = policy_check(of);
  EXPECT_THAT(report.text,
              AllOf(HasSubstr("note: "),
                    HasSubstr("policy.toml:3:19: **: run fell back from gpu to cpu for "),
                    HasSubstr("takes no float32"), HasSubstr(", fell back for ")));
  const Json json = Json::parse(report.json);
  ASSERT_FALSE(json["fell_back"].empty());
  for (const Json& row : json["fell_back"]) {
    EXPECT_THAT(row["path"].get<std::string>(), ::testing::EndsWith("Relu"));
    EXPECT_EQ(row["attribute"], "run");
    EXPECT_EQ(row["requested"], "gpu");
    EXPECT_EQ(row["actual"], "cpu");
    EXPECT_EQ(row["rule"], "policy.toml:3");
    EXPECT_THAT(row["reason"].get<std::string>(), ::testing::StartsWith("Relu: "));
  }
  EXPECT_EQ(json["rules"][0]["fell_back"], json["fell_back"].size());
}

TEST_F(PolicyFallBackTest, ExplainShowsRequestedAndActual) {
  PolicyCase of(options(prefer_gpu), lacking(no_relu));
  const Json fallen = Json::parse(policy_check(of).json)["fell_back"];
  ASSERT_FALSE(fallen.empty());
  const Report report = policy_explain(of, fallen[0]["path"]);
  EXPECT_THAT(report.text, AllOf(HasSubstr("requested gpu by policy.toml:3  at = \"**\": Relu: "),
                                 HasSubstr("requested gpu; it is here since: Relu: ")));
  const Json json = Json::parse(report.json);
  const Json& run = json["attributes"]["run"];
  EXPECT_EQ(run["requested"], "gpu");
  EXPECT_EQ(run["value"], "cpu");
  EXPECT_EQ(run["fell_back"][0]["requested"], "gpu");
  EXPECT_EQ(run["fell_back"][0]["rule"]["line"], 3);
  for (const Json& node : json["nodes"]) {
    EXPECT_EQ(node["requested"], "gpu") << node;
    EXPECT_EQ(node["device"], "cpu") << node;
  }
}

TEST_F(PolicyFallBackTest, TheRunDirectorySaysIt) {
  PolicyCase of(options(prefer_gpu), lacking(no_relu));
  const PlannedStep step = of.plan();
  const Json json = Json::parse(
      placement_json(step.micro_batches.back().program.lowered, of.policy(), of.resolved()));
  ASSERT_FALSE(json["fell_back"].empty());
  EXPECT_EQ(json["fell_back"][0]["requested"], "gpu");
}

TEST_F(PolicyFallBackTest, AGradientWithoutKernelsMovesItsOperator) {
  PolicyCase of(options(prefer_gpu), lacking({{"ReluGrad", ""}}));
  const Json fallen = Json::parse(policy_check(of).json)["fell_back"];
  ASSERT_FALSE(fallen.empty());
  EXPECT_THAT(fallen[0]["path"].get<std::string>(), ::testing::EndsWith("Relu"));
  EXPECT_EQ(fallen[0]["reason"], "ReluGrad: no kernel is listed");
}

TEST_F(PolicyFallBackTest, AnUpdateWithoutKernelsGoesToTheHost) {
  PolicyCase of(options(prefer_gpu), lacking({{"AdamUpdate", "no adam here"}}));
  for (const ParameterAttributes& parameter : of.resolved().parameters) {
    EXPECT_EQ(parameter.param.value, 1) << parameter.path;
    EXPECT_EQ(parameter.state.value, 0) << parameter.path;
  }
  EXPECT_THAT(of.resolved().notes, Not(::testing::IsEmpty()));
  EXPECT_GT(loss_of(of), 0);
}

TEST_F(PolicyFallBackTest, WithoutPreferItIsAnError) {
  EXPECT_THAT(error_of(options(R"({ at = "**", on = "gpu" },)"), lacking(no_relu)),
              AllOf(HasSubstr("policy.toml:3:19: "), HasSubstr("Relu"),
                    HasSubstr("gpu has no kernel for this operator"), HasSubstr("takes no float32"),
                    HasSubstr("need = \"prefer\" lets the rule fall back; or add { at = "),
                    HasSubstr("run = \"cpu\" }")));
  EXPECT_EQ(error_of(options(R"({ at = "**", on = "gpu" },)"), lacking({})), "no error");
}

TEST_F(PolicyFallBackTest, TheEmulatedDeviceHasKernelsForEverything) {
  for (const char* network :
       {"mlp", "lenet5", "conv_bn", "resnet18", "encoder", "gpt", "tied_decoder"}) {
    for (const char* optimizer : {"sgd", "adam", "adamw"}) {
      PolicyOptions whole = options(prefer_gpu, network);
      whole.overrides[0] = std::string("optimizer.kind=") + optimizer;
      whole.overrides.push_back("optimizer.clip_norm=1.0");
      PolicyCase of(whole, lacking({}));
      EXPECT_EQ(policy_check(of).text.find("note: "), std::string::npos)
          << network << " " << policy_check(of).text;
    }
  }
}

}  // namespace
}  // namespace tandem::api
