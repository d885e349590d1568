// Which programs a run consists of: a table, counted by hand.
#include "engine/train/programs/run_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/training/support.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using PartOfStep = MicroBatchKind;

/// "8 of 16 first x1 rows": samples of a micro-batch and of its step, its place, how often a full
/// step has it, and whether rows may be fetched ahead.
std::string text_of(const StepProgram& program) {
  constexpr const char* kinds[] = {"whole", "first", "middle", "last"};
  const MicroBatchShape& shape = program.shape;
  std::string text = std::to_string(shape.micro_batch) + " of " + std::to_string(shape.step) + " " +
                     kinds[static_cast<int>(shape.kind)] + " x" + std::to_string(program.times);
  if (shape.length > 0) text += " length " + std::to_string(shape.length);
  return text + (program.takes_rows_ahead ? " rows" : "");
}

std::vector<std::string> steps_of(const std::vector<std::string>& keys, const RunCounts& counts) {
  std::vector<std::string> texts;
  for (const StepProgram& program : step_programs(testing::small_config("/folder", keys), counts))
    texts.push_back(text_of(program));
  return texts;
}

TEST(RunProgramsTest, AStepHasAProgramForEachPlaceOfAMicroBatch) {
  EXPECT_THAT(steps_of({}, {}), ElementsAre("8 of 8 whole x1 rows"));
  EXPECT_THAT(steps_of({}, {.samples = 24}), ElementsAre("8 of 8 whole x1 rows"));
  EXPECT_THAT(steps_of({}, {.samples = 22}),
              ElementsAre("8 of 8 whole x1 rows", "6 of 6 whole x0"));
  EXPECT_THAT(steps_of({"batch_size=8", "micro_batch=2"}, {.samples = 19}),
              ElementsAre("2 of 8 first x1", "2 of 8 middle x2", "2 of 8 last x1 rows",
                          "2 of 3 first x0", "1 of 3 last x0"));
  EXPECT_THAT(
      steps_of({"data={kind=\"npz\", train={files=[\"d.npz\"]}, drop_last=true}"}, {.samples = 22}),
      ElementsAre("8 of 8 whole x1 rows"));
  // Fewer samples than a batch: every step has them all.
  EXPECT_THAT(steps_of({}, {.samples = 5}), ElementsAre("5 of 5 whole x1 rows"));
}

TEST(RunProgramsTest, AResumedEpochMayEndInAnotherStep) {
  EXPECT_THAT(steps_of({}, {.samples = 24, .samples_read = 5}),
              ElementsAre("8 of 8 whole x1 rows", "3 of 3 whole x0"));
  EXPECT_THAT(steps_of({}, {.samples = 24, .samples_read = 24}),
              ElementsAre("8 of 8 whole x1 rows"));
}

TEST(RunProgramsTest, LengthsComeLongestFirstAndInFullSteps) {
  EXPECT_THAT(steps_of({}, {.samples = 20, .lengths = {16, 32}}),
              ElementsAre("8 of 8 whole x1 length 32 rows", "4 of 4 whole x0 length 32",
                          "8 of 8 whole x0 length 16"));
}

TEST(RunProgramsTest, ARankHasItsShare) {
  EXPECT_THAT(steps_of({"batch_size=10", "micro_batch=5"}, {.samples = 24, .place = {0, 3}}),
              ElementsAre("2 of 10 first x1", "2 of 10 last x1", "2 of 4 whole x0"));
  EXPECT_THAT(steps_of({"batch_size=10", "micro_batch=5"}, {.samples = 24, .place = {2, 3}}),
              ElementsAre("1 of 10 first x1", "1 of 10 last x1", "1 of 4 whole x0"));
}

TEST(RunProgramsTest, AnEvaluationHasItsFullMicroBatchAndTheRest) {
  const auto programs = [](const std::vector<std::string>& keys, const RunCounts& counts,
                           bool exchanges = false) {
    return evaluation_programs(testing::small_config("/folder", keys), counts, exchanges);
  };
  EXPECT_THAT(programs({}, {.eval_samples = 20}).sizes, ElementsAre(8, 4));
  EXPECT_THAT(programs({}, {.eval_samples = 16}).sizes, ElementsAre(8));
  EXPECT_THAT(programs({}, {.eval_samples = 3}).sizes, ElementsAre(3));
  EXPECT_THAT(programs({"micro_batch=2"}, {.eval_samples = 5}).sizes, ElementsAre(2, 1));
  // Three ranks: 8 samples are 3, 3 and 2 of a micro-batch; 20 are 7, 7 and 6.
  EXPECT_THAT(programs({}, {.eval_samples = 20, .place = {0, 3}}).sizes, ElementsAre(3, 1));
  EXPECT_THAT(programs({}, {.eval_samples = 20, .place = {2, 3}}).sizes, ElementsAre(3));
  EXPECT_EQ(programs({}, {.eval_samples = 20, .place = {2, 3}}, true).rounds, 3);
  // A rank without a sample runs with the others.
  EXPECT_THAT(programs({}, {.eval_samples = 2, .place = {2, 3}}, true).sizes, ElementsAre(1));
  EXPECT_THAT(programs({}, {.eval_samples = 2, .place = {2, 3}}, false).sizes, IsEmpty());
}

TEST(RunProgramsTest, ALossThatComparesSamplesIsEvaluatedOverWholeBatches) {
  const RunConfig config = testing::small_config(
      "/folder", {"loss.terms=[{kind=\"info_nce\", anchor=\"logits\", positive=\"logits\"}]"});
  const auto share = [&](int rank, int ranks) {
    return evaluated_share(config, 21, {rank, ranks});
  };
  EXPECT_EQ(share(0, 2), (SampleShare{0, 16}));
  EXPECT_EQ(share(1, 2), (SampleShare{16, 5}));
  EXPECT_EQ(share(2, 4), (SampleShare{16, 5}));
  EXPECT_EQ(share(3, 4), (SampleShare{21, 0}));
  const auto sizes = [&](int rank, bool exchanges) {
    return evaluation_programs(config, {.eval_samples = 21, .place = {rank, 2}}, exchanges).sizes;
  };
  EXPECT_THAT(sizes(0, false), ElementsAre(8));
  EXPECT_THAT(sizes(1, false), ElementsAre(5));
  EXPECT_EQ(evaluation_programs(config, {.eval_samples = 21, .place = {1, 2}}, true).rounds, 2);
}

/// "1: TF" for a phase from step 1 on in which the first of two rules does not hold.
std::vector<std::string> phases_of(const std::string& rules, std::int64_t steps,
                                   std::int64_t steps_per_epoch = 3) {
  RunLength length;
  length.steps = steps;
  length.steps_per_epoch = steps_per_epoch;
  const RunConfig config = testing::small_config("/folder", {"parameters.freeze=" + rules});
  std::vector<std::string> texts;
  for (const FreezePhase& phase : freeze_phases(config.parameters.freeze, length)) {
    std::string text = std::to_string(phase.first_step) + ": ";
    for (const bool thawed : phase.thawed) text += thawed ? "T" : "F";
    texts.push_back(text);
  }
  return texts;
}

TEST(FreezePhasesTest, BeginWhereARuleBeginsOrEnds) {
  EXPECT_THAT(phases_of("[]", 9), ElementsAre("1: "));
  EXPECT_THAT(phases_of("[{at='fc1'}]", 9), ElementsAre("1: F"));
  EXPECT_THAT(phases_of("[{at='fc1', until='2 steps'}]", 9), ElementsAre("1: F", "3: T"));
  EXPECT_THAT(phases_of("[{at='fc1', from='2 steps'}]", 9), ElementsAre("1: T", "3: F"));
  EXPECT_THAT(phases_of("[{at='fc1', until='2 epochs'}, {at='fc2', from='1 epoch'}]", 9),
              ElementsAre("1: FT", "4: FF", "7: TF"));
  EXPECT_THAT(phases_of("[{at='fc1', until='4 steps'}, {at='fc2', until='4 steps'}]", 9),
              ElementsAre("1: FF", "5: TT"));
  // A change after the run's last step begins no phase.
  EXPECT_THAT(phases_of("[{at='fc1', until='9 steps'}]", 9), ElementsAre("1: F"));
  EXPECT_THAT(phases_of("[{at='fc1', until='8 steps'}]", 9), ElementsAre("1: F", "9: T"));
  EXPECT_THAT(phases_of("[{at='fc1', until='900 steps'}]", RunLength::unlimited),
              ElementsAre("1: F", "901: T"));
}

TEST(FreezeRulesTest, TheLastRuleThatCoversAParameterDecides) {
  const OperatorSet operators = all_operators();
  const Graph graph = testing::small_network(operators, 4);
  const RunConfig config = testing::small_config(
      "/folder", {"parameters.freeze=[{at='fc1.**'}, {at='fc1:weight', until='2 steps'}, "
                  "{at='fc2'}, {at='fc?.**', from='3 steps'}, {at='**:bias'}]"});
  const ParameterNames names(graph);
  const FreezeRules rules(config.parameters, names);
  const auto rule_of = [&](const std::string& name) {
    const FreezeRule* rule = rules.of(*graph.find_state(name));
    return rule == nullptr ? "none" : rule->at;
  };
  EXPECT_EQ(rule_of("fc1.weight"), "fc?.**");
  EXPECT_EQ(rule_of("fc1.bias"), "**:bias");
  EXPECT_EQ(rule_of("fc2.weight"), "fc?.**");
  EXPECT_TRUE(rules.always_freezes(*graph.find_state("fc1.bias")));
  EXPECT_FALSE(rules.always_freezes(*graph.find_state("fc1.weight")));
  const std::vector<std::string> idle = rules.without_effect(graph);
  ASSERT_EQ(idle.size(), 3u);
  EXPECT_THAT(idle[0], ::testing::HasSubstr("\"fc1.**\" has no effect"));
  EXPECT_THAT(idle[1], ::testing::HasSubstr("\"fc1:weight until 2 steps\" has no effect"));
  EXPECT_THAT(idle[2], ::testing::HasSubstr("\"fc2\" has no effect"));
}

}  // namespace
}  // namespace tandem
