// Computing losses and their gradient in one node changes no bit of a training: exported networks
// on the host and on the emulated device, in float32 and 16 bits, in micro-batches, with the loss
// elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/end_to_end/policy_cases.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

constexpr int joined_loss_steps = 4;

/// The results of a run, to be compared bit by bit, and how many nodes its steps have for a loss.
struct LossOutcome {
  std::vector<double> losses;
  std::map<std::string, std::string> states;
  std::map<std::string, int> nodes;  // number of cross-entropy nodes, by operator
};

class LossesInOneTest : public ::testing::TestWithParam<PolicyCase> {
 protected:
  LossesInOneTest() : network_(GetParam()) {}

  LossOutcome run(const std::string& policy, const std::vector<std::string>& more, bool in_one) {
    const std::string path = folder_ / "policy.toml";
    std::ofstream(path) << policy;
    PlacedOptions options;
    if (!in_one) options.lower_without = {"losses_with_gradients"};
    PlacedTraining training = network_.training(policy.empty() ? "" : path, more, options);
    LossOutcome outcome;
    for (int step = 0; step < joined_loss_steps; ++step)
      outcome.losses.push_back(training.step(network_.batch_of(step)));
    training.synchronize();
    EXPECT_THAT(training.monitor().order_errors(), ::testing::IsEmpty());
    for (const std::string& name : training.states().names()) {
      const HostTensor value = training.states().read(name);
      outcome.states[name].assign(static_cast<const char*>(value.data()), value.bytes());
    }
    for (const Node& node : training.program().lowered().graph.nodes) {
      if (node.op->name.starts_with("SoftmaxCrossEntropy")) ++outcome.nodes[node.op->name];
    }
    return outcome;
  }

  void expect_same(const std::string& rules, const std::vector<std::string>& more = {}) {
    SCOPED_TRACE(rules + ::testing::PrintToString(more));
    const std::string policy =
        rules.empty() ? ""
                      : "policy = 1\ndevices = { gpu = { use = \"emulated:0\", memory = "
                        "\"256MiB\" } }\nrules = [\n" +
                            rules + "]\n";
    const LossOutcome one = run(policy, more, true), two = run(policy, more, false);
    if (rules.find("acts") == std::string::npos) {  // recomputing logits needs two nodes
      EXPECT_EQ(one.nodes, (std::map<std::string, int>{{"SoftmaxCrossEntropyWithGrad", 1}}));
    }
    EXPECT_EQ(two.nodes, (std::map<std::string, int>{{"SoftmaxCrossEntropy", 1},
                                                     {"SoftmaxCrossEntropyGrad", 1}}));
    EXPECT_EQ(one.losses, two.losses);
    EXPECT_FALSE(one.states.empty());
    EXPECT_EQ(one.states == two.states, true);
  }

  NetworkCase network_;
  TemporaryFolder folder_;
};

const std::string on_gpu = "  { at = \"**\", on = \"gpu\" },\n";

TEST_P(LossesInOneTest, ChangeNoBitOnTheHost) {
  expect_same("");
  expect_same("", {"micro_batch=" + std::to_string(std::max<std::int64_t>(network_.batch / 2, 1))});
  expect_same("", {"optimizer.clip_norm=0.1"});
}

TEST_P(LossesInOneTest, ChangeNoBitOnTheDevice) {
  expect_same(on_gpu);
  expect_same(on_gpu + "  { at = \"**:*\", state = \"cpu\" },\n");
  expect_same(on_gpu + "  { at = \"loss.**\", run = \"cpu\" },\n");
  expect_same(on_gpu, {"precision.compute=bfloat16"});
  expect_same(on_gpu, {"precision.compute=float16"});
  expect_same(on_gpu, {"precision.compute=float16", "precision.loss_scale=1024"});
}

// The gradient of the losses is the labels' weights divided by the sum of weights.
TEST_P(LossesInOneTest, ChangeNoBitWhereSomeLabelsDoNotCount) {
  const std::string loss =
      "loss.terms=[{name=\"loss\", kind=\"softmax_cross_entropy\", logits=\"logits\", "
      "labels=\"labels\", label_smoothing=0.1, ignore_index=1}]";
  expect_same("", {loss});
  expect_same(on_gpu, {loss});
  expect_same(on_gpu, {loss, "precision.compute=bfloat16"});
}

TEST_P(LossesInOneTest, ChangeNoBitWhereActivationsAreNotKept) {
  expect_same(on_gpu + "  { at = \"**\", acts = \"recompute\" },\n");
  expect_same(on_gpu + "  { at = \"**\", acts = \"offload\" },\n");
  expect_same(on_gpu + "  { at = \"**\", acts = \"recompute\" },\n",
              {"precision.compute=bfloat16"});
}

INSTANTIATE_TEST_SUITE_P(Networks, LossesInOneTest, ::testing::ValuesIn(policy_networks()),
                         [](const auto& info) { return info.param.network; });

}  // namespace
}  // namespace tandem::testing
