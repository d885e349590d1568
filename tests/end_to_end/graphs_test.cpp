// Running segments of a step as captured graphs changes no bit, whatever the policy; the order of
// accesses is still checked, and what cannot be captured runs without a graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "tests/end_to_end/graph_watch.h"
#include "tests/end_to_end/policy_cases.h"
#include "tests/end_to_end/rows_ahead_model.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Fed values have two buffers; each is used for two steps without a graph, a capture and a replay.
constexpr int graph_steps = 8, places = 2;

/// The results of a run, to be compared bit by bit.
struct Outcome {
  std::vector<double> losses;
  std::map<std::string, std::vector<std::byte>> states;
};

void expect_same_bits(const Outcome& a, const Outcome& b) {
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    EXPECT_EQ(std::memcmp(&a.losses[i], &b.losses[i], sizeof a.losses[i]), 0)
        << "step " << i + 1 << ": " << a.losses[i] << " and " << b.losses[i];
  }
  EXPECT_FALSE(a.states.empty());
  EXPECT_EQ(a.states == b.states, true);
}

/// `run_step` runs a step, counted from 0, and returns its loss.
Outcome outcome_of(PlacedTraining& training, const std::function<double(int)>& run_step) {
  Outcome outcome;
  for (int step = 0; step < graph_steps; ++step) outcome.losses.push_back(run_step(step));
  training.synchronize();
  for (const std::string& name : training.states().names()) {
    const HostTensor value = training.states().read(name);
    const auto* from = static_cast<const std::byte*>(value.data());
    outcome.states[name].assign(from, from + value.bytes());
  }
  return outcome;
}

class GraphsTest : public ::testing::TestWithParam<PolicyCase> {
 protected:
  GraphsTest() : network_(GetParam()) {}

  static std::string on_gpu(const std::string& more = "") {
    return "policy = 1\ndevices = { gpu = { use = \"emulated:0\", memory = \"256MiB\" } }\n"
           "rules = [\n  { at = \"**\", on = \"gpu\" },\n" +
           more + "]\n";
  }
  PlacedTraining training(const std::string& policy, GraphWatch& watch, bool capture = true,
                          const std::vector<std::string>& more = {}) {
    const std::string path = folder_ / "policy.toml";
    std::ofstream(path) << policy;
    PlacedOptions options;
    options.placing = watched(watch, capture);
    return network_.training(path, more, options);
  }
  Outcome run(const std::string& policy, GraphWatch& watch, bool capture = true,
              const std::vector<std::string>& more = {}) {
    PlacedTraining training = this->training(policy, watch, capture, more);
    Outcome outcome = outcome_of(training);
    EXPECT_THAT(training.monitor().order_errors(), IsEmpty());
    return outcome;
  }
  Outcome outcome_of(PlacedTraining& training) {
    return testing::outcome_of(training,
                               [&](int step) { return training.step(network_.batch_of(step)); });
  }
  void expect_same(const std::string& policy, const std::vector<std::string>& more = {}) {
    GraphWatch off, on;
    const Outcome plain = run(policy, off, false, more), graphs = run(policy, on, true, more);
    expect_same_bits(graphs, plain);
    EXPECT_EQ(off.captures + off.launches, 0u);
    launches_ += on.launches;
  }

  NetworkCase network_;
  TemporaryFolder folder_;
  std::uint64_t launches_ = 0;
};

// After two steps, in which libraries may prepare themselves, there is a graph for each of the two
// buffers that fed batches use in turn.
TEST_P(GraphsTest, AStepOnTheDeviceAloneIsOneGraph) {
  GraphWatch off, on;
  const Outcome plain = run(on_gpu(), off, false);
  PlacedTraining training = this->training(on_gpu(), on);
  std::vector<std::uint64_t> launches, captures;
  const Outcome graphs = testing::outcome_of(training, [&](int step) {
    launches.push_back(on.launches);
    captures.push_back(on.captures);
    return training.step(network_.batch_of(step));
  });
  EXPECT_THAT(training.monitor().order_errors(), IsEmpty());
  EXPECT_THAT(training.program().graph_problems(), IsEmpty());
  expect_same_bits(graphs, plain);
  EXPECT_EQ(off.captures + off.launches, 0u);
  for (int step = 0; step < graph_steps; ++step) {  // numbers before that step
    EXPECT_EQ(launches[step], std::max(step - places, 0)) << "step " << step + 1;
    EXPECT_EQ(captures[step], std::clamp(step - places, 0, places)) << "step " << step + 1;
  }
}

TEST_P(GraphsTest, PoliciesChangeNoBit) {
  expect_same(on_gpu("  { at = \"**:*\", state = \"cpu\" },\n"));
  expect_same(on_gpu("  { at = \"**:*\", on = \"cpu\", lookahead = 0 },\n"));
  expect_same(on_gpu("  { at = \"**\", acts = \"recompute\" },\n"));
  expect_same(on_gpu("  { at = \"**\", acts = \"offload\" },\n"));
  expect_same(on_gpu(), {"optimizer.clip_norm=0.1"});
  expect_same(on_gpu("  { at = \"**:*\", state = \"cpu\" },\n"), {"precision.compute=bfloat16"});
  expect_same(on_gpu(),
              {"micro_batch=" + std::to_string(std::max<std::int64_t>(network_.batch / 2, 1))});
  EXPECT_GT(launches_, 0u);
}

TEST_P(GraphsTest, RandomPoliciesChangeNoBit) {
  const Names names = policy_names_of(network_.model, network_.batch);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_same(random_policy(names, seed));
  }
}

// If a device cannot capture a kernel, its segment runs without a graph, and no step fails.
TEST_P(GraphsTest, WhatCannotBeCapturedRunsAsBefore) {
  GraphWatch off, on;
  const Outcome plain = run(on_gpu(), off, false);
  PlacedTraining training = this->training(on_gpu(), on);
  const Plan& plan = training.program().plan();
  for (const Launch& launch : plan.launches) {
    const Instruction& instruction = plan.queues[launch.queue].instructions[launch.index];
    if (instruction.kind == Instruction::Kind::run)  // keeps the last kernel
      on.not_captured = training.program().lowered().graph.node(instruction.node).path;
  }
  ASSERT_NE(on.not_captured, "");
  expect_same_bits(outcome_of(training), plain);
  EXPECT_THAT(training.monitor().order_errors(), IsEmpty());
  EXPECT_EQ(on.launches, 0u);
  EXPECT_EQ(on.captures, 1u);  // it was ended as broken, and is not tried again
  EXPECT_THAT(
      training.program().graph_problems(),
      ElementsAre(AllOf(HasSubstr("gpu: the "), HasSubstr(" to " + on.not_captured + " are"),
                        HasSubstr("this kernel cannot be captured"))));
}

// A graph that is launched too early is found, as a kernel would be.
TEST_P(GraphsTest, AMissingWaitBeforeAGraphIsFound) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "these runs race on purpose";
#endif
  GraphWatch watch;
  PlacedTraining training = this->training(on_gpu(), watch);
  for (int step = 0; step < 2 * places; ++step) training.step(network_.batch_of(step));
  training.synchronize();
  ASSERT_THAT(training.monitor().order_errors(), IsEmpty());
  const std::uint64_t launches = watch.launches;
  watch.forgets_waits = true;
  training.step(network_.batch_of(2 * places));
  training.synchronize();
  EXPECT_EQ(watch.launches, launches + 1);
  EXPECT_THAT(training.monitor().order_errors(), Contains(HasSubstr("no event orders them")));
}

// A trace has the operations in graphs with their times, in the order of the plan.
TEST_P(GraphsTest, TracesHaveEveryOperation) {
  GraphWatch watch;
  PlacedTraining training = this->training(on_gpu(), watch);
  for (int step = 0; step < 2 * places; ++step) training.step(network_.batch_of(step));
  training.synchronize();
  const Program& program = training.program();
  std::vector<std::string> expected;
  for (const Launch& launch : program.plan().launches) {
    const Instruction& instruction = program.plan().queues[launch.queue].instructions[launch.index];
    if (instruction.kind == Instruction::Kind::run)
      expected.push_back(program.lowered().graph.node(instruction.node).path);
  }
  const std::uint64_t launches = watch.launches;
  training.monitor().start_trace(10000);
  training.step(network_.batch_of(2 * places));
  training.synchronize();
  EXPECT_EQ(watch.launches, launches + 1);
  std::vector<std::string> got;
  for (const TraceSpan& span : training.monitor().trace()) {
    EXPECT_GT(span.real_start, 0) << span.name;
    EXPECT_GE(span.real_end, span.real_start) << span.name;
    if (training.monitor().lane_name(span.lane) == "gpu") got.emplace_back(span.name);
  }
  EXPECT_EQ(got, expected);
}

INSTANTIATE_TEST_SUITE_P(Networks, GraphsTest,
                         ::testing::Values(PolicyCase{"mlp", 0}, PolicyCase{"conv_bn", 1},
                                           PolicyCase{"gpt", 4}, PolicyCase{"encoder", 2}),
                         [](const auto& info) { return info.param.network; });

// Copies whose length is known only when they are enqueued are not part of graphs.
TEST(GraphsOfTables, RowsChangeNoBit) {
  for (const bool rows_ahead : {false, true}) {
    std::vector<Outcome> outcomes;
    GraphWatch watch;
    for (const bool capture : {false, true}) {
      PlacedOptions options;
      options.rows_ahead = rows_ahead;
      options.placing = watched(watch, capture);
      PlacedTraining training(model, batch_size, settings(rows_ahead ? ahead : ""), feeds_of(0),
                              options);
      outcomes.push_back(outcome_of(training, [&](int step) {
        const PlacedTraining::Feeds next = feeds_of(step + 1);
        return training.step(feeds_of(step), rows_ahead ? &next : nullptr);
      }));
      EXPECT_THAT(training.monitor().order_errors(), IsEmpty());
      EXPECT_EQ(watch.launches > 0, capture);
    }
    expect_same_bits(outcomes[0], outcomes[1]);
  }
}

}  // namespace
}  // namespace tandem::testing
