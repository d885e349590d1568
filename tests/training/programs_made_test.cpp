// A run asks its model for the programs of `programs_of` and for no others: memory plans, which
// count those, then count what the run makes.
#include <set>
#include <tuple>

#include "engine/train/programs/run_programs.h"
#include "tests/training/test_hooks.h"
#include "tests/training/training_run.h"

namespace tandem {
namespace {

/// Samples of a micro-batch, whether in training form, length.
using Asked = std::set<std::tuple<std::int64_t, bool, std::int64_t>>;

struct Case {
  const char* name;
  std::vector<std::string> keys;
  std::int64_t samples = 22, eval_samples = 0;
};

const Case cases[] = {
    {"whole steps", {}, 24},
    {"a smaller last step", {"epochs=2", "steps=9"}, 22},
    {"fewer samples than a batch", {}, 5},
    {"micro-batches", {"micro_batch=2"}, 19},
    {"micro-batches that leave a rest", {"micro_batch=4"}, 22},
    {"an evaluation", {"eval.every=\"2 steps\"", "eval.metrics=[\"accuracy\"]"}, 22, 20},
    {"an evaluation of few samples", {"eval.every=\"2 steps\""}, 24, 3},
    {"an evaluation in micro-batches", {"micro_batch=2", "eval.every=\"1 steps\""}, 22, 7},
    {"frozen parameters",
     {"parameters.freeze=[{at=\"**\", until=\"3 steps\"}, {at=\"fc1\", from=\"4 steps\"}]"},
     22},
    {"averages", {"optimizer.ema={decay=0.9}", "eval.every=\"3 steps\""}, 22, 10},
    {"float16", {"precision.compute=\"float16\"", "micro_batch=4"}, 22, 9},
};

class ProgramsMadeTest : public testing::TrainingRun, public ::testing::WithParamInterface<Case> {};

TEST_P(ProgramsMadeTest, AreThoseOfTheValue) {
  const Case& of = GetParam();
  RunConfig config = testing::small_config(folder_.path(), of.keys);
  DataSets data{testing::small_data(of.samples, 3)};
  if (of.eval_samples > 0) data.eval = testing::small_data(of.eval_samples, 4);

  RunCounts counts;
  counts.samples = of.samples;
  counts.eval_samples = of.eval_samples;
  const RunPrograms programs =
      programs_of(config, counts, run_length(config, counts.samples), false);
  Asked expected;
  for (const StepProgram& program : programs.steps)
    expected.insert({program.shape.micro_batch, true, program.shape.length});
  for (const std::int64_t size : programs.evaluation.sizes) expected.insert({size, false, 0});

  Asked asked;
  RunParts parts = engine_.parts();
  const OperatorSet& operators = engine_.operators;
  testing::own_model(parts).make_graph = [&](const ForwardKey& key) {
    asked.insert({key.samples, key.training, key.length});
    return testing::small_network(operators, key.samples);
  };
  Training training(std::move(config), std::move(parts), std::move(data));
  EXPECT_EQ(asked, expected) << "before the run";
  training.run("", {});
  EXPECT_EQ(asked, expected) << "in the run";
}

void PrintTo(const Case& of, std::ostream* to) { *to << of.name; }

INSTANTIATE_TEST_SUITE_P(All, ProgramsMadeTest, ::testing::ValuesIn(cases), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
});

}  // namespace
}  // namespace tandem
