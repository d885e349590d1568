// What is due after which step, without a model.
#include "engine/train/loop/calendar.h"

#include <gtest/gtest.h>

#include "engine/train/loop/run_signals.h"
#include "tests/training/support.h"
#include "tests/training/test_hooks.h"

namespace tandem {
namespace {

RunLength twelve_steps() { return {.steps_per_epoch = 4, .steps = 12}; }

Calendar calendar(const std::vector<std::string>& keys) {
  return {testing::small_config("/folder", keys), twelve_steps()};
}

TEST(CalendarTest, TheFirstAndTheLastStepAreLogged) {
  Calendar days = calendar({"log.every=\"5 steps\""});
  std::vector<std::uint64_t> logged;
  for (std::uint64_t step = 1; step <= 12; ++step) {
    if (days.logs(step, {})) logged.push_back(step);
  }
  EXPECT_EQ(logged, (std::vector<std::uint64_t>{1, 5, 10, 12}));
}

TEST(CalendarTest, TheLastStepIsSavedAtTheEndOnly) {
  Calendar days = calendar({"checkpoint.every=\"1 epochs\""});
  std::vector<std::uint64_t> saved;
  for (std::uint64_t step = 1; step <= 12; ++step) {
    EXPECT_EQ(days.needs_states(step, {}), step % 4 == 0) << step;
    if (days.saves(step, {})) saved.push_back(step);
  }
  EXPECT_EQ(saved, (std::vector<std::uint64_t>{4, 8}));
}

// A time is up where the signals say so, whatever the clock of this process says.
TEST(CalendarTest, TimesFollowTheSignals) {
  Calendar days = calendar({"log.every=\"1 h\"", "checkpoint.every=\"1 h\"", "max_time=\"1 h\""});
  EXPECT_FALSE(days.signals().log);
  EXPECT_FALSE(days.signals().time_is_up);
  EXPECT_FALSE(days.logs(5, {}));
  EXPECT_TRUE(days.logs(6, {.log = true}));
  EXPECT_FALSE(days.saves(7, {.log = true}));
  EXPECT_TRUE(days.saves(8, {.save = true}));
}

TEST(RunSignalsTest, SeveralRanksFollowTheSumOfAStep) {
  const Calendar days = calendar({});
  testing::Hooks hooks;
  bool stops = false;
  hooks.stop_requested = [&stops] { return stops; };
  const std::shared_ptr<TrainingObserver> observer = hooks.observer();
  RunSignals alone({0, 1}, *observer), second({1, 2}, *observer);
  alone.follow(days);
  second.follow(days);
  EXPECT_EQ(second.own().number(), 0);
  stops = true;
  EXPECT_TRUE(alone.is_interrupted());
  EXPECT_FALSE(second.is_interrupted()) << "no step has returned the sum yet";
  second.take(second.own().number());
  EXPECT_TRUE(second.is_interrupted());
  stops = false;
  EXPECT_TRUE(alone.is_interrupted()) << "it stays so";
}

}  // namespace
}  // namespace tandem
