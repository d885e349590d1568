// A policy never changes results beyond rounding: networks under many placements against the run
// with everything on the cpu. What the devices count must equal the plan.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "include/tandem/error.h"
#include "tests/end_to_end/policy_cases.h"
#include "tests/engine/plan/missing_wait.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem {
namespace {

using namespace testing;

constexpr int policy_steps = 10, policies = 20;
constexpr int every_wait = 7;  // one policy in seven is checked wait by wait

void expect_no_redundant_wait(const Program& program) {
  for (const Launch& wait : waits_of(program.plan())) {
    Plan broken = program.plan();
    erase_wait(broken, wait);
    EXPECT_FALSE(verify(broken, program.lowered()).empty())
        << "wait " << wait.index << " of " << broken.queues[wait.queue].name;
  }
}

class PoliciesTest : public ::testing::TestWithParam<PolicyCase> {};

TEST_P(PoliciesTest, LossesAreThoseOfTheCpu) {
  const NetworkCase c(GetParam());
  const Names names = policy_names_of(c.model, c.batch);
  ASSERT_FALSE(names.operators.empty());
  ASSERT_FALSE(names.parameters.empty());
  std::vector<double> expected;
  PlacedTraining on_cpu = c.training();
  for (int step = 0; step < policy_steps; ++step) expected.push_back(on_cpu.step(c.batch_of(step)));

  const TemporaryFolder folder;
  std::uint64_t copied = 0;
  for (int seed = 0; seed < policies; ++seed) {
    const std::string policy = random_policy(names, static_cast<std::uint64_t>(seed));
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::string path = folder / "policy.toml";
    std::ofstream(path) << policy;
    PlacedTraining training = c.training(path);
    for (const Copied& device : planned_copies(training.program(), true))
      copied += device.to_device + device.to_host;
    for (int step = 0; step < policy_steps; ++step) {
      const std::vector<Copied> before = counted(training);
      const double loss = training.step(c.batch_of(step));
      ASSERT_NEAR(loss, expected[step], 1e-5 * std::abs(expected[step]))
          << "step " << step + 1 << "\n"
          << policy;
      expect_planned_bytes(difference(counted(training), before), training.program());
    }
    training.synchronize();
    EXPECT_EQ(training.monitor().order_errors(), std::vector<std::string>());
    expect_planned_memory(training);
    if (seed % every_wait == 0) expect_no_redundant_wait(training.program());
    ASSERT_FALSE(::testing::Test::HasFailure()) << policy;
  }
  EXPECT_GT(copied, 0u);
}

// Training through the library's Session is the same.
TEST_P(PoliciesTest, SessionsTakeThePolicy) {
  const NetworkCase c(GetParam());
  const TemporaryFolder folder;
  const std::string path = folder / "policy.toml";
  std::ofstream(path) << random_policy(policy_names_of(c.model, c.batch), 1);
  PlacedTraining training = c.training(path);
  std::vector<std::string> settings = c.settings;
  settings.push_back("policy=" + Json(path).dump());
  api::Session session(c.model, c.batch, settings);
  for (int step = 0; step < 3; ++step) {
    api::Tensors fed;
    for (const auto& [name, tensor] : c.feeds)
      fed[name] = array_of(tensor, step * c.batch, c.batch);
    EXPECT_EQ(session.step(fed), training.step(c.batch_of(step))) << "step " << step + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, PoliciesTest, ::testing::ValuesIn(policy_networks()),
                         [](const auto& info) { return info.param.network; });

}  // namespace
}  // namespace tandem
