// Networks in training on the CUDA device over the fake runtime, under the policies of the
// placement tests: losses equal those of the emulated device, and no rule is broken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "engine/graph/error.h"
#include "tests/cuda/support/fake_machine.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReplayTest : public ::testing::TestWithParam<PolicyCase> {
 protected:
  ReplayTest() : network_(GetParam()) {}

  std::vector<double> losses(const std::string& policy, int steps,
                             const std::vector<std::string>& more = {},
                             const api::PlacingArguments& placing = {}) {
    const std::string path = policy.empty() ? "" : folder_ / "policy.toml";
    if (!path.empty()) std::ofstream(path) << policy;
    PlacedOptions options;
    options.placing = placing;
    PlacedTraining training = network_.training(path, more, options);
    return losses_of(training, steps, [&](int step) { return network_.batch_of(step); });
  }
  /// Compares the losses on the GPU with those on the emulated device.
  void compare_on(const std::string& policy, int steps, const std::vector<std::string>& more = {},
                  double tolerance = 1e-5, FakeRuntimeOptions options = {}) {
    FakeMachine machine(options);
    const std::vector<double> got = losses(policy, steps, more, machine.placing());
    EXPECT_GT(machine.made, 0);
    expect_near(got, losses(policy, steps, more), tolerance);
  }

  /// Checks that graphs change no bit; returns how many were launched.
  std::uint64_t compare_graphs(const std::string& policy, int steps,
                               const std::vector<std::string>& more = {},
                               FakeRuntimeOptions options = {}) {
    const std::string path = folder_ / "policy.toml";
    std::ofstream(path) << policy;
    std::uint64_t launches = 0;
    std::vector<std::vector<double>> losses;
    std::vector<std::map<std::string, std::vector<std::byte>>> states(2);
    for (const bool capture : {false, true}) {
      FakeMachine machine(options);
      machine.capture = capture;
      PlacedOptions placed;
      placed.placing = machine.placing();
      PlacedTraining training = network_.training(path, more, placed);
      losses.push_back(
          losses_of(training, steps, [&](int step) { return network_.batch_of(step); }));
      for (const std::string& name : training.states().names()) {
        const HostTensor value = training.states().read(name);
        const auto* from = static_cast<const std::byte*>(value.data());
        states[capture][name].assign(from, from + value.bytes());
      }
      EXPECT_EQ(launches, 0u);
      launches = *machine.launches;
    }
    EXPECT_EQ(std::memcmp(losses[0].data(), losses[1].data(), losses[0].size() * sizeof(double)),
              0);
    EXPECT_FALSE(states[0].empty());
    EXPECT_EQ(states[0] == states[1], true);
    return launches;
  }

  static std::string rules(const std::string& more) {
    return "policy = 1\ndevices = { gpu = { use = \"emulated:0\", memory = \"256MiB\" } }\n"
           "rules = [\n  { at = \"**\", on = \"gpu\" },\n" +
           more + "]\n";
  }

  NetworkCase network_;
  TemporaryFolder folder_;
};

TEST_P(ReplayTest, AllOnTheGpu) { compare_on(rules(""), 4); }

TEST_P(ReplayTest, AllOnTheGpuWithLateStreams) {
  compare_on(rules(""), 2, {}, 1e-5, {.late = true});
}

TEST_P(ReplayTest, StatesOnTheHost) {
  compare_on(rules("  { at = \"**:*\", state = \"cpu\" },\n"), 4);
  compare_on(rules("  { at = \"**:*\", state = \"cpu\" },\n"), 2, {}, 1e-5, {.late = true});
}

TEST_P(ReplayTest, ActivationsThatAreNotKept) {
  compare_on(rules("  { at = \"**\", acts = \"recompute\" },\n"), 3);
  compare_on(rules("  { at = \"**\", acts = \"offload\" },\n"), 3);
}

// Two steps run without a graph, the others launch one each: fed values use two buffers in turn.
TEST_P(ReplayTest, GraphsChangeNoBit) {
  EXPECT_EQ(compare_graphs(rules(""), 6), 4u);
  EXPECT_EQ(compare_graphs(rules(""), 4, {}, {.late = true}), 2u);
  EXPECT_EQ(compare_graphs(rules(""), 4, {"optimizer.clip_norm=0.1"}), 2u);
  compare_graphs(rules("  { at = \"**:*\", state = \"cpu\" },\n"), 5);
  compare_graphs(rules("  { at = \"**\", acts = \"offload\" },\n"), 5);
  const Names names = policy_names_of(network_.model, network_.batch);
  compare_graphs(random_policy(names, 3), 5);  // on two GPUs
}

TEST_P(ReplayTest, ClippedInPasses) {
  const std::int64_t half = network_.batch / 2;
  compare_on(rules(""), 3,
             {"optimizer.clip_norm=0.1",
              "micro_batch=" + std::to_string(std::max<std::int64_t>(half, 1))});
}

TEST_P(ReplayTest, SixteenBits) {
  const std::vector<std::string> half{"precision.compute=bfloat16"};
  compare_on(rules("  { at = \"**:*\", state = \"cpu\" },\n"), 3, half, 0.02);
}

TEST_P(ReplayTest, RandomPolicies) {
  const Names names = policy_names_of(network_.model, network_.batch);
  for (int seed = 0; seed < 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    compare_on(random_policy(names, static_cast<std::uint64_t>(seed)), 3);
  }
}

TEST_P(ReplayTest, LongRandomPolicies) {
  const Names names = policy_names_of(network_.model, network_.batch);
  for (int seed = 4; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    compare_on(random_policy(names, static_cast<std::uint64_t>(seed)), 10);
  }
}

// The run stops with the operator's path, and its objects are destroyed without another error.
TEST_P(ReplayTest, FailuresStopTheRun) {
  std::ofstream(folder_ / "policy.toml") << rules("");
  for (const bool sticky : {false, true}) {
    FakeMachine machine;
    machine.is_broken = sticky;
    PlacedOptions options;
    options.placing = machine.placing();
    PlacedTraining training = network_.training(folder_ / "policy.toml", {}, options);
    training.step(network_.batch_of(0));
    machine.runtime->fail("launch", 3,
                          sticky ? cudaErrorIllegalAddress : cudaErrorLaunchOutOfResources, sticky);
    try {
      training.step(network_.batch_of(1));
      FAIL() << "nothing failed";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::runtime);
      EXPECT_NE(error.diagnostics()[0].path, "");
      EXPECT_THAT(error.what(), HasSubstr("gpu: a kernel failed"));
    }
    EXPECT_THROW(training.step(network_.batch_of(2)), Error);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, ReplayTest, ::testing::ValuesIn(policy_networks()),
                         [](const auto& info) { return info.param.network; });

}  // namespace
}  // namespace tandem::testing
