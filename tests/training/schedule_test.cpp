// Learning-rate factors against those of PyTorch (tests/scripts/schedule_expectations.py) and the
// formulas of schedule.h.
#include "engine/train/updates/learning_rate_factors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "tests/harness/folders.h"

namespace tandem {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

const Json& script() {
  static const Json json = Json::parse(read_file(source_folder() + "/tests/data/schedules.json"));
  return json;
}

RunConfig parsed(const std::string& schedule, std::vector<std::string> more = {}) {
  more.push_back("optimizer.schedule=" + schedule);
  return parse_run_config("model = 'm.onnx'\nsteps = 40\noptimizer = { kind = 'sgd', lr = 0.1 }\n",
                          "/folder/train.toml", more);
}

std::string refusal(const std::string& schedule, const std::vector<std::string>& more = {}) {
  try {
    parsed(schedule, more);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(ScheduleTest, EveryKindIsPyTorchs) {
  const double base = script()["base"];
  const RunLength length{script()["steps_per_epoch"], script()["steps"]};
  std::set<std::string> kinds;
  for (const Json& one : script()["cases"]) {
    SCOPED_TRACE(one["name"]);
    const ScheduleConfig config = parsed(one["schedule"]).optimizer.schedule;
    const Schedule schedule(config, base, length);
    const auto rates = one["rates"].get<std::vector<double>>();
    for (std::size_t i = 0; i < rates.size(); ++i) {
      EXPECT_NEAR(base * schedule.factor(static_cast<std::int64_t>(i) + 1), rates[i], 1e-12)
          << "step " << i + 1;
    }
    kinds.emplace(std::visit([](const auto& kind) { return kind.name; }, config.kind));
  }
  EXPECT_EQ(kinds.size() + 1, std::variant_size_v<ScheduleKind>) << "plateau has cases of its own";
}

// PyTorch divides by zero if the first step is the highest one.
TEST(ScheduleTest, ACycleMayBeginAtItsTop) {
  for (const char* more : {"", ", three_phase = true"}) {
    const std::string schedule = std::string("{ kind = 'one_cycle', pct_start = 0.1") + more + " }";
    const Schedule of(parsed(schedule).optimizer.schedule, 0.1, {5, 10});
    EXPECT_NEAR(of.factor(1), *more == 0 ? 1 : 1.0 / 25, 1e-12) << schedule;
    for (std::int64_t step = 2; step <= 10; ++step)
      EXPECT_LT(of.factor(step), of.factor(step - 1)) << schedule << " step " << step;
    EXPECT_NEAR(of.factor(10), 1 / 25.0 / 1e4, 1e-12) << schedule;
  }
}

TEST(ScheduleTest, PlateausArePyTorchs) {
  const double base = script()["base"];
  for (const Json& one : script()["plateaus"]) {
    SCOPED_TRACE(one["name"]);
    const RunConfig config =
        parsed(one["schedule"], {"eval.every='1 epoch'", "eval.metrics=['accuracy']"});
    Schedules schedules(config.optimizer, {5, 1000});
    const auto values = one["values"].get<std::vector<double>>();
    const auto rates = one["rates"].get<std::vector<double>>();
    const std::string metric = one["larger"].get<bool>() ? "accuracy" : "loss";
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double before = schedules.factor(0, 7);
      const auto said =
          schedules.take_in(config.eval.metrics, {{"other", 0.0}, {metric, values[i]}});
      EXPECT_NEAR(base * schedules.factor(0, 7), rates[i], 1e-12) << "evaluation " << i + 1;
      EXPECT_EQ(said.empty(), schedules.factor(0, 7) == before);
      // Another object that takes over its state continues as it does.
      Schedules other(config.optimizer, {5, 1000});
      other.restore(schedules.plateaus());
      EXPECT_EQ(other.factor(0, 7), schedules.factor(0, 7));
      EXPECT_EQ(other.plateaus(), schedules.plateaus());
    }
  }
}

TEST(ScheduleTest, GroupsFollowInProportionOrHaveTheirOwn) {
  const RunConfig config = parsed("{ kind = 'linear', final = 0.05 }",
                                  {"optimizer.groups=[{at='a', lr=1.0}, {at='b', lr=0.5, "
                                   "schedule={kind='linear', final=0.1}}]"});
  const Schedules schedules(config.optimizer, {10, 40});
  EXPECT_EQ(schedules.of_group(-1), 0);
  EXPECT_EQ(schedules.of_group(0), 0);
  EXPECT_EQ(schedules.of_group(1), 1);
  EXPECT_DOUBLE_EQ(schedules.factor(0, 21), 0.75);
  EXPECT_DOUBLE_EQ(schedules.factor(1, 21), 0.6);
}

TEST(ScheduleTest, SaysWhatIsWrong) {
  EXPECT_THAT(refusal("{ warmup = '3 steps' }"), HasSubstr("schedule.kind: this key is missing"));
  EXPECT_THAT(refusal("[]"), HasSubstr("there is no part"));
  EXPECT_THAT(refusal("[ { kind = 'constant' }, { kind = 'cosine' } ]"),
              HasSubstr("parts.0.length: this key is missing: another part follows"));
  EXPECT_THAT(refusal("[ { kind = 'constant', length = '2 h' }, { kind = 'cosine' } ]"),
              HasSubstr("a schedule counts steps or epochs"));
  EXPECT_THAT(refusal("[ { kind = 'plateau' } ]"), HasSubstr("kind: unknown value"));
  EXPECT_THAT(refusal("{ kind = 'multistep' }"), HasSubstr("multistep needs it"));
  EXPECT_THAT(refusal("{ kind = 'multistep', milestones = ['1 h'] }"),
              HasSubstr("a schedule counts steps or epochs"));
  EXPECT_THAT(refusal("{ kind = 'constant', parts = [ { kind = 'cosine' } ] }"),
              HasSubstr("a schedule of several parts has this in each of them"));
  EXPECT_THAT(refusal("{ kind = 'plateau' }"), HasSubstr("eval.every = \"1 epoch\""));
  EXPECT_THAT(refusal("{ kind = 'plateau', metric = 'accuracy' }", {"eval.every='1 epoch'"}),
              HasSubstr("not one of the metrics"));
  EXPECT_THAT(refusal("{ kind = 'plateau', factor = 1.0 }"), HasSubstr("below 1"));
}

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
