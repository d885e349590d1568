// `--profile h100`: plans for a GPU that this machine may lack.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "api/policy/policy_case.h"
#include "api/program/policy_files.h"
#include "engine/formats/files.h"
#include "tests/api/small_model.h"
#include "tests/harness/program.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::api {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// x [2048, 512] and two layers of 1 MiB each.
std::string two_layers() {
  return tandem::testing::SmallModel()
      .input("x", {2048, 512})
      .weight("a.weight", {512, 512}, 0.1f)
      .weight("b.weight", {512, 512}, 0.1f)
      .node("MatMul", "a", {"x", "a.weight"}, "h")
      .node("MatMul", "b", {"h", "b.weight"}, "y")
      .output("y", {2048, 512})
      .bytes();
}

class PolicyProfileTest : public ::testing::Test {
 protected:
  PolicyProfileTest() {
    std::ofstream(folder_ / "model.onnx", std::ios::binary) << two_layers();
    std::ofstream(folder_ / "policy.toml")
        << "policy = 1\nrules = [ { at = \"**\", on = \"gpu\" } ]\n";
  }
  PolicyOptions options(const std::string& profile) const {
    PolicyOptions options;
    options.model = folder_ / "model.onnx";
    options.policy = folder_ / "policy.toml";
    options.overrides = {"threads=1"};
    options.profile = profile;
    return options;
  }
  static Json plan(const PolicyOptions& options) { return Json::parse(policy_plan(options).json); }
  static double step_ms(const PolicyOptions& options) { return plan(options)["time"]["step_ms"]; }

  tandem::testing::TemporaryFolder folder_;
};

TEST_F(PolicyProfileTest, APlanNeedsNoGpu) {
  const Json h200 = plan(options("h200"));
  EXPECT_EQ(h200["devices"]["gpu"]["limit"], 141'000'000'000u);
  EXPECT_TRUE(h200["fits"]);
  EXPECT_LT(step_ms(options("h200")), step_ms(options("t4")));
}

TEST_F(PolicyProfileTest, ADeviceArgumentKeepsItsMemory) {
  PolicyOptions with = options("h100");
  with.devices = {"gpu=emulated:0,memory=64MiB"};
  EXPECT_EQ(plan(with)["devices"]["gpu"]["limit"], 64u << 20);
  with.devices = {"gpu=emulated:0"};
  EXPECT_EQ(plan(with)["devices"]["gpu"]["limit"], 80'000'000'000u);
}

TEST_F(PolicyProfileTest, TheRunsPrecisionCounts) {
  PolicyOptions with = options("a100");
  with.overrides.push_back("precision.tf32=true");
  EXPECT_DOUBLE_EQ(PolicyCase(with).profiles().at("gpu").profile.flops, 0.7 * 156e12);
}

// An emulated device by itself is rated slower than the host.
TEST_F(PolicyProfileTest, AutoFindsWorkForTheGpu) {
  PolicyAutoOptions automatic;
  automatic.most_plans = 60;
  automatic.to = folder_ / "found.toml";
  PolicyOptions with = options("h100");
  with.policy.clear();
  const Report report = policy_auto(with, automatic);
  EXPECT_THAT(read_file(automatic.to), HasSubstr("{ at = \"**\", on = \"gpu\" }"));
  EXPECT_THAT(report.text, HasSubstr("(times by the data sheet of h100)"));
}

TEST_F(PolicyProfileTest, TheHelpListsTheNames) {
  const std::string help = tandem::testing::run_program("policy plan --help 2>&1").text;
  for (const std::string& name : known_accelerators()) EXPECT_THAT(help, HasSubstr(name));
  const auto wrong = tandem::testing::run_program("policy plan --profile h1000 --model " +
                                                  (folder_ / "model.onnx") + " 2>&1");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.text, AllOf(HasSubstr("did you mean \"h100\"?"), Not(HasSubstr("emulated"))));
}

}  // namespace
}  // namespace tandem::api
