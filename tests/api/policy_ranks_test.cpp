// `policy plan` for one of several ranks: its exchanges; one process has none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tandem/error.h"
#include "tandem/tandem.h"
#include "tests/api/small_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr std::int64_t ranks_batch = 64, ranks_width = 32;
constexpr int layers = 3;

class PolicyRanksTest : public ::testing::Test {
 protected:
  PolicyRanksTest() {
    SmallModel model;
    model.input("x", {ranks_batch, ranks_width}).output("logits", {ranks_batch, ranks_width});
    std::string x = "x";
    for (int l = 0; l < layers; ++l) {
      const std::string name = "layers." + std::to_string(l);
      const std::string y = l + 1 == layers ? "logits" : name + "_y";
      model.weight(name + ".weight", {ranks_width, ranks_width}, 0.2f)
          .weight(name + ".bias", {ranks_width}, 0.1f);
      model.node("MatMul", name + ".matmul", {x, name + ".weight"}, name + "_product");
      model.node("Add", name + ".add", {name + "_product", name + ".bias"}, y);
      x = y;
    }
    options_.model = folder_ / "model.onnx";
    std::ofstream(options_.model, std::ios::binary) << model.bytes();
    options_.bind = {{"batch", ranks_batch}};
    options_.overrides = {
        "loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", logits=\"logits\", "
        "labels=\"labels\"}]"};
  }
  Json plan(int ranks) {
    options_.ranks = ranks;
    return Json::parse(api::policy_plan(options_).json);
  }

  TemporaryFolder folder_;
  api::PolicyOptions options_;
};

TEST_F(PolicyRanksTest, AllGradientsAndTheLossAreExchanged) {
  const Json exchange = plan(4)["exchange"];
  // Weights and biases; the loss and the flag by which a rank asks to stop.
  constexpr std::int64_t bytes = layers * (ranks_width * ranks_width + ranks_width) * 4 + 2 * 4;
  EXPECT_EQ(exchange["bytes"], bytes);
  EXPECT_EQ(exchange["ranks"], 4);
  std::int64_t operands = 0;
  for (const Json& one : exchange["exchanges"]) {
    EXPECT_EQ(one["op"], "AllReduce");
    EXPECT_EQ(one["algorithm"], "whole");
    operands += one["operands"].get<std::int64_t>();
  }
  EXPECT_EQ(operands, 2 * layers + 1);
  // The 1.25e9 bytes a second and 20 microseconds a message of `DeviceProfile`.
  const double messages = 2.25 * static_cast<double>(exchange["exchanges"].size());
  EXPECT_NEAR(exchange["ms"].get<double>(), 3.0 * bytes / 1.25e6 + messages * 0.02, 1e-6);
  EXPECT_THAT(api::policy_plan(options_).text,
              AllOf(HasSubstr("ranks       4, this is the plan of one: "),
                    HasSubstr(" AllReduce (whole) ")));
}

TEST_F(PolicyRanksTest, AProfileSaysHowFastTheNetworkIs) {
  options_.profile = folder_ / "network.json";
  std::ofstream(options_.profile) << R"({ "tandem_device_profile": 1, "devices": { "cpu": {
             "network_bytes_per_second": 1e6, "network_latency_seconds": 0 } } })";
  const Json exchange = plan(2)["exchange"];
  EXPECT_NEAR(exchange["ms"].get<double>(), exchange["bytes"].get<double>() / 1e3, 1e-6);
  // A link this slow delays the updates.
  EXPECT_GT(exchange["exposed_ms"].get<double>(), 0.5 * exchange["ms"].get<double>());
}

TEST_F(PolicyRanksTest, OneProcessExchangesNothing) {
  EXPECT_FALSE(plan(1).contains("exchange"));
  EXPECT_THAT(api::policy_plan(options_).text, Not(HasSubstr("ranks")));
}

TEST_F(PolicyRanksTest, ARankComputesItsShare) {
  const auto activations = [](const Json& plan) {
    return plan["devices"]["cpu"]["activations"].get<double>();
  };
  EXPECT_LT(activations(plan(4)), 0.5 * activations(plan(1)));
}

TEST_F(PolicyRanksTest, MoreRanksThanSamplesAreRefused) {
  for (const int ranks : {65, 0}) {
    try {
      plan(ranks);
      FAIL() << ranks;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(), HasSubstr("ranks"));
    }
  }
}

}  // namespace
}  // namespace tandem::testing
