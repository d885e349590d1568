// A learning rate that evaluations lower: the rate reached belongs to the run, so that a resumed
// run continues with it.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/training/training_run.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using testing::Trained;
using Keys = std::vector<std::string>;

class PlateauTest : public testing::TrainingRun {
 protected:
  void SetUp() override { eval_ = testing::small_data(7, 9); }
};

// No evaluation improves by this much, so the rate falls with every second one.
const Keys keys{"steps=12", "optimizer.momentum=0.9", "eval.every=\"2 steps\"",
                "optimizer.schedule={kind=\"plateau\", patience=1, factor=0.5, threshold=1e6, "
                "threshold_mode=\"abs\", cooldown=1}"};

TEST_F(PlateauTest, LowersTheRateAfterEvaluations) {
  const Trained trained = run(keys);
  // The first evaluation is the best; two that are not better follow, then one is ignored.
  const std::vector<double> rates = trained.all("lr");
  ASSERT_EQ(rates.size(), 12u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_DOUBLE_EQ(rates[i], 0.1) << i;
  for (std::size_t i = 6; i < 12; ++i) EXPECT_DOUBLE_EQ(rates[i], 0.05) << i;
}

TEST_F(PlateauTest, AResumedRunGoesOnExactly) {
  const Trained whole = run(keys);
  for (const std::uint64_t stop : {3, 4, 5, 6, 7, 9, 10}) {
    SCOPED_TRACE(stop);
    const Trained stopped = run(keys, stop);
    const Trained resumed = run(keys, 0, stopped.result.run_dir);
    EXPECT_EQ(testing::difference(resumed.training->states(), whole.training->states()), "");
    EXPECT_EQ(testing::metrics_of(stopped.result.run_dir),
              testing::metrics_of(whole.result.run_dir));
  }
}

TEST_F(PlateauTest, GroupsHaveSchedulesOfTheirOwn) {
  // A rate of 0 for one layer leaves it as it was.
  const Keys own{"steps=3",
                 "optimizer.groups=[{at=\"fc1\", schedule={kind=\"multistep\", "
                 "milestones=[\"1 steps\"], gamma=0.0}}]"};
  const Trained one = run({"steps=1"}), three = run(own), plain = run({"steps=3"});
  const auto weight = [](const Trained& t, const char* name) {
    const HostTensor value = t.training->states().read(name);
    const auto all = value.as<float>();
    return std::vector<float>(all.begin(), all.end());
  };
  EXPECT_EQ(weight(three, "fc1.weight"), weight(one, "fc1.weight"));
  EXPECT_NE(weight(plain, "fc1.weight"), weight(one, "fc1.weight"));
  EXPECT_NE(weight(three, "fc2.weight"), weight(one, "fc2.weight"));
}

}  // namespace
}  // namespace tandem
