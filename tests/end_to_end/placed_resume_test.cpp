// Checkpoints do not depend on the placement: a run that is resumed every two steps under another
// policy has the losses of one that stays on the host.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/end_to_end/fixture_runs.h"

namespace tandem {
namespace {

using namespace testing;

constexpr int steps_each = 2;

struct ResumeCase {
  const char *network, *optimizer, *fields;
};

class PlacedResumeTest : public ::testing::TestWithParam<ResumeCase>, protected FixtureRuns {
 protected:
  PlacedResumeTest()
      : FixtureRuns(GetParam().network, GetParam().optimizer + std::string("\nlr = 0.003"), "",
                    GetParam().fields) {}
};

TEST_P(PlacedResumeTest, LossesAreThoseOfTheHostAlone) {
  const std::vector<std::string> policies{
      "{ at = \"**\", on = \"gpu\" },\n{ at = \"**\", state = \"cpu\" },\n",
      "{ at = \"**\", on = \"cpu\" },\n{ at = \"**\", op = \"MatMul\", on = \"gpu\" },\n"
      "{ at = \"**\", op = \"Gemm\", on = \"gpu\", optional = true },\n",
      "{ at = \"**\", on = \"cpu\" },\n",
      "{ at = \"**\", on = \"gpu\" },\n{ at = \"**\", param = \"cpu\", acts = \"offload\" },\n",
      "{ at = \"**\", on = \"gpu\" },\n"};
  const int steps = steps_each * static_cast<int>(policies.size());
  train("host", steps, policies[2]);
  for (std::size_t p = 0; p < policies.size(); ++p) {
    train("moved", steps_each * static_cast<int>(p + 1), policies[p], p > 0);
  }
  const std::vector<double> expected = losses("host"), got = losses("moved");
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(steps));
  ASSERT_EQ(got.size(), expected.size());
  for (int step = 0; step < steps; ++step) {
    EXPECT_NEAR(got[step], expected[step], 1e-5 * std::abs(expected[step])) << "step " << step + 1;
  }
  EXPECT_GT(std::abs(expected.back() - expected.front()), 1e-3 * expected.front()) << "no training";

  // The files hold the same tensors in the same order.
  const CheckpointContent host = newest("host"), moved = newest("moved");
  EXPECT_EQ(moved.position.step, static_cast<std::uint64_t>(steps));
  for (const auto& [a, b] :
       {std::pair{&host.model, &moved.model}, std::pair{&host.optimizer, &moved.optimizer}}) {
    ASSERT_EQ(a->size(), b->size());
    for (std::size_t t = 0; t < a->size(); ++t) {
      EXPECT_EQ((*a)[t].name, (*b)[t].name);
      EXPECT_EQ((*a)[t].tensor.type(), (*b)[t].tensor.type()) << (*a)[t].name;
    }
  }
}

constexpr const char* images =
    "[data.fields]\n"
    "image  = { from = \"image\", as = [ \"scale(1/255)\" ] }\n"
    "labels = \"labels\"\n";

INSTANTIATE_TEST_SUITE_P(Networks, PlacedResumeTest,
                         ::testing::Values(ResumeCase{"mlp", "kind = \"sgd\"\nmomentum = 0.9",
                                                      images},
                                           ResumeCase{"lenet5", "kind = \"adam\"", images},
                                           ResumeCase{"gpt", "kind = \"adamw\"", ""}),
                         [](const auto& info) { return std::string(info.param.network); });

}  // namespace
}  // namespace tandem
