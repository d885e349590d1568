// A network trained by optimizers whose step depends on the whole parameter (LAMB, Adafactor) or
// consists of operators (Muon, schedule-free AdamW): on the host, on an accelerator, and there with
// the states on the host; resumed from a checkpoint; in 16 bits, where an update also writes the
// weight.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/end_to_end/fixture_runs.h"

namespace tandem {
namespace {

using namespace testing;

constexpr int whole_tensor_steps = 12;
constexpr const char* host = "{ at = \"**\", on = \"cpu\" },\n";
constexpr const char* device = "{ at = \"**\", on = \"gpu\" },\n";
constexpr const char* states_on_host =
    "{ at = \"**\", on = \"gpu\" },\n{ at = \"**\", state = \"cpu\" },\n";

struct WholeTensorCase {
  std::string kind, optimizer;
  std::vector<std::string> other;  // settings that change the last loss by `other_loss`
  double other_loss;
};

const std::vector<WholeTensorCase>& whole_tensor_cases() {
  static const std::vector<WholeTensorCase> list{
      {"lamb",
       "lr = 0.02",
       {"optimizer.always_adapt=false", "optimizer.weight_decay=0"},  // Adam, without norms
       1e-4},
      {"adafactor", "lr = 0.05", {"optimizer.eps2=1"}, 1e-3},  // without the parameters' sizes
      {"muon",
       "lr = 0.02\ngroups = [ { at = \"**:bias\", kind = \"adamw\", lr = 0.005 } ]",
       {"optimizer.ns_steps=1"},
       1e-3},
      {"schedule_free_adamw", "lr = 0.02", {"optimizer.betas=[0.5, 0.999]"}, 1e-3},
  };
  return list;
}

class WholeTensorRuns : public ::testing::TestWithParam<WholeTensorCase>, protected FixtureRuns {
 protected:
  WholeTensorRuns()
      : FixtureRuns("mlp",
                    "kind = \"" + GetParam().kind + "\"\n" + GetParam().optimizer +
                        "\nweight_decay = 0.01\nclip_norm = 1.0",
                    "shuffle = \"none\"\n",
                    "[data.fields]\n"
                    "image  = { from = \"image\", as = [ \"scale(1/64)\", \"normalize(2, 1)\" ] }\n"
                    "labels = \"labels\"\n") {}

  void expect_losses(const std::string& run, const std::vector<double>& expected,
                     double tolerance) const {
    const std::vector<double> got = losses(run);
    ASSERT_EQ(got.size(), expected.size()) << run;
    for (std::size_t step = 0; step < got.size(); ++step) {
      EXPECT_NEAR(got[step], expected[step], tolerance * std::abs(expected[step]))
          << run << ", step " << step + 1;
    }
  }
};

TEST_P(WholeTensorRuns, LossesAreTheSameWhereverStatesLie) {
  train("host", whole_tensor_steps, host);
  const std::vector<double> expected = losses("host");
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(whole_tensor_steps));
  std::ifstream file(parity_folder() + "../" + GetParam().kind + "_losses.json");
  expect_losses("host", Json::parse(file)["losses"].get<std::vector<double>>(), 2e-5);
  train("device", whole_tensor_steps, device);
  train("cut", whole_tensor_steps, states_on_host);
  train("micro-batches", whole_tensor_steps, states_on_host, false, {"micro_batch=2"});
  expect_losses("device", expected, 1e-5);
  expect_losses("cut", expected, 1e-5);
  expect_losses("micro-batches", expected, 1e-5);
  train("other", whole_tensor_steps, host, false, GetParam().other);
  EXPECT_GT(std::abs(losses("other").back() - expected.back()), GetParam().other_loss);
}

TEST_P(WholeTensorRuns, AResumedRunIsTheSameBitByBit) {
  train("whole", whole_tensor_steps, states_on_host);
  train("parts", whole_tensor_steps / 2, states_on_host);
  train("parts", whole_tensor_steps, states_on_host, true);
  expect_losses("parts", losses("whole"), 0);
  const CheckpointContent whole = newest("whole"), parts = newest("parts");
  EXPECT_EQ(parts.position.step, static_cast<std::uint64_t>(whole_tensor_steps));
  EXPECT_FALSE(whole.optimizer.empty());
  for (const auto& [a, b] :
       {std::pair{&whole.model, &parts.model}, std::pair{&whole.optimizer, &parts.optimizer}}) {
    ASSERT_EQ(a->size(), b->size());
    for (std::size_t t = 0; t < a->size(); ++t) {
      const HostTensor &x = (*a)[t].tensor, &y = (*b)[t].tensor;
      EXPECT_EQ((*a)[t].name, (*b)[t].name);
      ASSERT_EQ(x.type(), y.type()) << (*a)[t].name;
      EXPECT_EQ(std::memcmp(x.data(), y.data(), x.bytes()), 0) << (*a)[t].name;
    }
  }
}

TEST_P(WholeTensorRuns, SixteenBitsFollowFloat32) {
  train("float32", whole_tensor_steps, states_on_host);
  for (const std::string type : {"bfloat16", "float16"}) {
    for (const char* policy : {device, states_on_host}) {
      const std::string run = type + (policy == device ? "_device" : "_cut");
      std::vector<std::string> precision{"precision.compute=" + type};
      if (type == "float16") precision.emplace_back("precision.loss_scale=128");
      train(run, whole_tensor_steps, policy, false, precision);
      expect_losses(run, losses("float32"), type == "bfloat16" ? 2e-2 : 4e-3);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, WholeTensorRuns, ::testing::ValuesIn(whole_tensor_cases()),
                         [](const auto& info) { return info.param.kind; });

}  // namespace
}  // namespace tandem
