// Learning-rate factors against the formulas of schedule.h.
#include "engine/training/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem {
namespace {

Duration steps(double n) { return {n, Duration::Unit::steps}; }

TEST(ScheduleTest, ConstantWithWarmUp) {
  ScheduleConfig config;
  config.warmup = steps(4);
  const Schedule schedule(config, 0.1, {10, 100});
  EXPECT_DOUBLE_EQ(schedule.factor(1), 0.25);
  EXPECT_DOUBLE_EQ(schedule.factor(4), 1.0);
  EXPECT_DOUBLE_EQ(schedule.factor(5), 1.0);
  EXPECT_DOUBLE_EQ(schedule.factor(100), 1.0);
}

// torch.optim.lr_scheduler.CosineAnnealingLR(T_max=10, eta_min=0.01) from 0.1: rates of steps 1,
// 6, 10.
TEST(ScheduleTest, CosineIsPyTorchs) {
  ScheduleConfig config;
  config.kind = CosineSchedule{.final = 0.01};
  const Schedule schedule(config, 0.1, {10, 10});
  EXPECT_NEAR(0.1 * schedule.factor(1), 0.1, 1e-12);
  EXPECT_NEAR(0.1 * schedule.factor(6), 0.055, 1e-12);
  EXPECT_NEAR(0.1 * schedule.factor(10), 0.0122025, 1e-7);
}

TEST(ScheduleTest, StepAndLinear) {
  ScheduleConfig config;
  config.kind = StepSchedule{.step_size = Duration{1, Duration::Unit::epochs}, .gamma = 0.5};
  const Schedule by_epoch(config, 1, {10, 30});
  EXPECT_DOUBLE_EQ(by_epoch.factor(10), 1);
  EXPECT_DOUBLE_EQ(by_epoch.factor(11), 0.5);
  EXPECT_DOUBLE_EQ(by_epoch.factor(30), 0.25);
  config.kind = LinearSchedule{.final = 0};
  const Schedule linear(config, 1, {10, 10});
  EXPECT_DOUBLE_EQ(linear.factor(1), 1);
  EXPECT_DOUBLE_EQ(linear.factor(6), 0.5);
}

}  // namespace
}  // namespace tandem
