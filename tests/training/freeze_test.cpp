// parameters.freeze in whole trainings: which rule decides, that all that later programs need is
// known before the first step, and that every number is logged, however a step is cut.
#include <set>

#include "engine/plan/plan.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Trained;

class FreezeTest : public testing::TrainingRun {
 protected:
  /// The steps that change fc1.weight, according to the norms of its updates.
  static std::vector<int> changed_of(const std::string& run_dir) {
    std::vector<int> steps;
    for (const nlohmann::json& line : testing::metrics_of(run_dir)) {
      const auto norm = line.find("norm.update.fc1:weight");
      if (norm != line.end() && norm->get<double>() > 0) steps.push_back(line["step"]);
    }
    return steps;
  }
  std::vector<std::string> messages_;
};

// The page says that the last rule that covers a parameter counts.
TEST_F(FreezeTest, TheLastRuleCounts) {
  const auto steps = [&](const std::string& rules) {
    const Trained run = this->run(
        {"steps=6", "log.norms=['fc1:weight']", "optimizer.lr=0.1", "parameters.freeze=" + rules});
    messages_ = run.messages;
    return changed_of(run.result.run_dir);
  };
  EXPECT_THAT(steps("[{at='fc1'}, {at='fc1', until='2 steps'}]"), ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(messages_, Contains(AllOf(HasSubstr("parameters.freeze: \"fc1\" has no effect"))));
  EXPECT_THAT(steps("[{at='fc1', until='2 steps'}, {at='fc1', until='4 steps'}]"),
              ElementsAre(5, 6));
  EXPECT_THAT(steps("[{at='fc1', until='4 steps'}, {at='fc1', until='2 steps'}]"),
              ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(steps("[{at='fc1', from='2 steps'}, {at='fc1', until='4 steps'}]"),
              ElementsAre(5, 6));
  EXPECT_THAT(steps("[{at='fc1', until='2 steps'}, {at='fc1', from='4 steps'}]"),
              ElementsAre(1, 2, 3, 4));
  // Frozen for good by the last rule: the norms are of no parameter that ever trains.
  EXPECT_THAT(testing::error_text([&] { steps("[{at='fc1', until='2 steps'}, {at='fc1'}]"); }),
              HasSubstr("log.norms: \"fc1:weight\" matches no parameter that is trained"));
}

TEST_F(FreezeTest, NormsAreThereWhereTheParameterTrains) {
  const auto keys = [](const std::string& rule, const std::string& norms) {
    return std::vector<std::string>{"steps=6", "log.norms=" + norms,
                                    "parameters.freeze=[{at='fc1', " + rule + "}]"};
  };
  for (const char* norms : {"['fc1:weight']", "['**']", "['fc1:weight', 'fc2:weight']"}) {
    EXPECT_THAT(changed_of(run(keys("from='3 steps'", norms)).result.run_dir), ElementsAre(1, 2, 3))
        << norms;
    const Trained later = run(keys("until='3 steps'", norms));
    EXPECT_THAT(changed_of(later.result.run_dir), ElementsAre(4, 5, 6)) << norms;
    const Trained stopped = run(keys("until='3 steps'", norms), 3);
    const Trained resumed = run(keys("until='3 steps'", norms), 0, stopped.result.run_dir);
    EXPECT_EQ(testing::metrics_of(resumed.result.run_dir),
              testing::metrics_of(later.result.run_dir))
        << norms;
  }
}

TEST_F(FreezeTest, WhatALaterPhaseIsRefusedIsSaidBeforeTheFirstStep) {
  const auto made = [&](const std::vector<std::string>& keys) {
    return testing::error_text([&] {
      Training(testing::small_config(folder_.path(), keys), engine_.parts(), {train_, eval_}, {});
    });
  };
  // It works on rows, which a bias does not have.
  EXPECT_THAT(made({"steps=9", "optimizer.groups=[{at='fc1:bias', kind='rowwise_adagrad'}]",
                    "parameters.freeze=[{at='fc1', until='4 steps'}]"}),
              AllOf(HasSubstr("works on rows"),
                    HasSubstr("(from step 5 on, by parameters.freeze fc1 until 4 steps)")));
  EXPECT_THAT(made({"steps=9", "parameters.freeze=[{at='fc1'}, {at='fc2', from='4 steps'}]"}),
              AllOf(HasSubstr("nothing to train"), HasSubstr("\"fc2\" from 4 steps")));
  // A run that ends before has no such phase.
  EXPECT_EQ(made({"steps=4", "optimizer.groups=[{at='fc1:bias', kind='rowwise_adagrad'}]",
                  "parameters.freeze=[{at='fc1', until='4 steps'}]"}),
            "no error");
}

// Adam's moments of fc1 appear when it thaws; the run asks for their memory before it starts.
TEST_F(FreezeTest, MemoryIsThatOfTheLargestPhase) {
  const auto peak = [&](const std::string& rules) {
    std::size_t most = 0;
    RunParts parts = engine_.parts();
    parts.options.accept = [&](const Plan& plan) { most = std::max(most, plan.memory.at(0).peak); };
    Training(testing::small_config(
                 folder_.path(), {"steps=9", "optimizer.kind=adam", "parameters.freeze=" + rules}),
             parts, {train_, eval_}, {});
    return most;
  };
  const std::size_t frozen = peak("[{at='fc1'}]"), thaws = peak("[{at='fc1', until='4 steps'}]");
  // Adam's two moments of 6 x 8 and 8 floats, each aligned to 64 bytes; gradients come in addition.
  EXPECT_GE(thaws, frozen + 2 * (192 + 64));
  EXPECT_GE(peak("[{at='fc1', from='4 steps'}]"), frozen + 2 * (192 + 64));
}

/// Options of a run, and the numbers that each line of its log has besides the loss.
struct LoggedCase {
  std::vector<std::string> keys;
  std::vector<std::string> names = {};
};

TEST_F(FreezeTest, EveryNumberIsLoggedUnderEveryOption) {
  eval_ = testing::small_data(9, 4);
  const std::vector<LoggedCase> options{
      {{}},
      {{"micro_batch=4"}},
      {{"micro_batch=2"}},
      {{"optimizer.groups=[{at='fc1', lr=0.5}]"}},
      {{"optimizer.groups=[{at='**', lr=0.5, kind='adam'}]"}},
      {{"optimizer.schedule={kind='cosine'}"}},
      {{"parameters.freeze=[{at='fc1', until='2 steps'}]"}},
      {{"parameters.freeze=[{at='fc1', from='2 steps'}]"}},
      {{"precision={compute='float16'}"}, {"loss_scale", "skipped_steps"}},
      {{"optimizer.clip_norm=1.0"}, {"gradient_norm"}},
      {{"optimizer.clip_value=0.1"}},
      {{"optimizer.clip_adaptive=0.1", "optimizer.clip_norm=1.0"}, {"gradient_norm"}},
      {{"log.norms=['fc2:weight']"}, {"norm.gradient.fc2:weight", "norm.update.fc2:weight"}},
      {{"optimizer.ema={decay=0.9}", "eval.weights='ema'"}},
      {{"optimizer.lookahead={k=2}"}},
  };
  const auto check = [&](const LoggedCase& a, const LoggedCase& b) {
    std::vector<std::string> keys{"steps=4", "log.also=['csv']"};
    keys.insert(keys.end(), a.keys.begin(), a.keys.end());
    keys.insert(keys.end(), b.keys.begin(), b.keys.end());
    std::string said;
    for (const std::string& key : keys) said += key + " ";
    const Trained done = run(keys);
    std::set<std::string> names{"loss", "lr", "wall", "samples_per_second", "data.wait"};
    for (const LoggedCase* of : {&a, &b}) names.insert(of->names.begin(), of->names.end());
    const std::string header = testing::lines_of(done.result.run_dir + "/metrics.csv").at(0);
    int steps = 0;
    for (const std::string& text : testing::lines_of(done.result.run_dir + "/metrics.jsonl")) {
      const nlohmann::json line = nlohmann::json::parse(text);
      if (line.contains("phase")) continue;
      ++steps;
      for (const std::string& name : names) {
        EXPECT_TRUE(line.contains(name)) << said << name << " in " << text;
        EXPECT_THAT(header + ",", HasSubstr("," + name + ","));
      }
    }
    EXPECT_EQ(steps, 4) << said;
    for (const TrainingProgress& progress : done.steps) Trained::value(progress, "lr");
  };
  const LoggedCase none{{}}, halves{{"micro_batch=4"}};
  for (const LoggedCase& option : options) {
    check(option, none);
    if (option.keys.empty() || option.keys[0].starts_with("micro_batch")) continue;
    check(option, halves);
  }
}

// From 1e-3, times 10 a step: 1 after three steps.
TEST_F(FreezeTest, TheLoggedRateIsThatOfTheStep) {
  const std::vector<std::string> keys{"steps=4", "optimizer.lr=0.001",
                                      "optimizer.schedule={kind='exponential', gamma=10.0, "
                                      "period='1 step'}"};
  const std::vector<double> whole = run(keys).all("lr");
  std::vector<std::string> cut = keys;
  cut.push_back("micro_batch=4");
  EXPECT_EQ(run(cut).all("lr"), whole);
  EXPECT_NEAR(whole.at(3) / whole.at(0), 1000, 1e-3);
}

}  // namespace
}  // namespace tandem
