// Programs against node-by-node evaluation: with all passes, with each one off, and with none.
#include "engine/runtime/program.h"

#include <gtest/gtest.h>

#include "engine/lower/placed_graph.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/reference/reference_kernels.h"
#include "tests/harness/allocation_count.h"
#include "tests/harness/program_check.h"
#include "tests/harness/test_device.h"

namespace tandem::testing {
namespace {

// One set of switched-off passes for each pass, one for none and one for all.
std::vector<std::vector<std::string>> switches() {
  std::vector<std::vector<std::string>> result{{}};
  for (const std::string& name : optional_passes()) result.push_back({name});
  result.push_back(optional_passes());
  return result;
}

void expect_equal(const Graph& graph, const OperatorSet& operators, Device& device, int steps,
                  double tolerance) {
  for (const std::vector<std::string>& off : switches()) {
    ProgramOptions options;
    options.lower.disabled_passes = off;
    std::string without;
    for (const std::string& name : off) without += " " + name;
    EXPECT_EQ(program_difference(graph, operators, device, steps, tolerance, options), "")
        << "without" << without;
  }
}

class ProgramTest : public ::testing::Test {
 protected:
  const OperatorSet operators = all_operators();
  std::unique_ptr<Device> plain = make_test_device(reference_kernels());
  std::unique_ptr<Device> fast = make_test_device(reference_kernels_as_fast());
  std::unique_ptr<Device> channels_last = make_test_device(channels_last_kernels());
  std::unique_ptr<Device> cpu = make_cpu_device(1);
};

TEST_F(ProgramTest, MlpEqualsEvaluation) {
  for (Update update : {Update::sgd, Update::momentum, Update::adam}) {
    const Graph graph = mlp_training(operators, 4, {7, 6, 5, 3}, update);
    verify(graph);
    expect_equal(graph, operators, *plain, 3, 2e-5);
    expect_equal(graph, operators, *fast, 3, 2e-5);
  }
}

TEST_F(ProgramTest, ConvolutionsEqualEvaluation) {
  const Graph graph = convolution_training(operators);
  verify(graph);
  expect_equal(graph, operators, *plain, 3, 1e-4);
  expect_equal(graph, operators, *fast, 3, 1e-4);
  expect_equal(graph, operators, *channels_last, 3, 1e-4);
}

TEST_F(ProgramTest, AttentionEqualsEvaluation) {
  const Graph graph = attention_training(operators);
  verify(graph);
  expect_equal(graph, operators, *plain, 3, 1e-4);
  expect_equal(graph, operators, *fast, 3, 1e-4);
}

TEST_F(ProgramTest, CpuEqualsEvaluation) {
  expect_equal(mlp_training(operators, 4, {7, 6, 5, 3}, Update::sgd), operators, *cpu, 3, 5e-5);
  expect_equal(mlp_training(operators, 8, {70, 300, 300, 3}, Update::momentum), operators, *cpu, 2,
               1e-4);
  expect_equal(convolution_training(operators), operators, *cpu, 3, 2e-4);
  expect_equal(attention_training(operators), operators, *cpu, 3, 2e-4);
}

TEST_F(ProgramTest, RandomGraphsEqualEvaluation) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_graph(operators, seed);
    verify(graph);
    expect_equal(graph, operators, seed % 3 == 0 ? *plain : *fast, 2, 1e-6);
  }
}

TEST_F(ProgramTest, AllocatesNothingInSteps) {
  if (!counts_allocations()) GTEST_SKIP() << "the sanitizer has its own heap";
  // Convolutions on plain kernels: oneDNN's own execute makes its argument map on the heap.
  const std::vector<std::pair<Graph, Device*>> cases{
      {mlp_training(operators, 4, {7, 6, 5, 3}, Update::adam), cpu.get()},
      {attention_training(operators), cpu.get()},
      {convolution_training(operators), channels_last.get()}};
  for (const auto& [graph, device] : cases) {
    OwnProgram own = make_program(graph, operators, *device);
    const Feeds feeds = random_feeds(graph, 1, 1);
    StepContext context;
    for (std::uint64_t ticket = 0; ticket < 2; ++ticket) run_step(*own.program, feeds, ticket);
    const Lowered& lowered = own.program->lowered();
    std::vector<std::int64_t> calls(lowered.nodes.size(), 0);
    own.program->set_probe([&](NodeId node, bool begin) {
      const std::int64_t now = AllocationCount().total();
      calls[node.index] += begin ? -now : now;
    });
    const AllocationCount count;
    for (std::uint64_t ticket = 2; ticket < 10; ++ticket) own.program->run(context, ticket);
    EXPECT_EQ(count.calls(), 0);
    for (std::size_t n = 0; n < calls.size(); ++n) {
      EXPECT_EQ(calls[n], 0) << lowered.nodes[n].kernel->name << " at "
                             << lowered.graph.nodes[n].path;
    }
  }
}

TEST_F(ProgramTest, SlotsAreFreeOnceTheirStepHasRun) {
  const Graph graph = mlp_training(operators, 4, {7, 3}, Update::sgd);
  OwnProgram own = make_program(graph, operators, *plain);
  Program& program = *own.program;
  EXPECT_EQ(program.input_slots(), 3);
  EXPECT_TRUE(program.slot_free(2));
  EXPECT_FALSE(program.slot_free(3));
  run_step(program, random_feeds(graph, 1, 1), 0);
  EXPECT_TRUE(program.slot_free(3));
  EXPECT_NE(program.input_slot(0, 0), program.input_slot(0, 1));
  EXPECT_EQ(program.input_slot(0, 0), program.input_slot(0, 3));
}

TEST_F(ProgramTest, ProgramsShareState) {
  const Graph graph = mlp_training(operators, 4, {7, 5, 3}, Update::sgd);
  const Graph small = mlp_training(operators, 2, {7, 5, 3}, Update::sgd);
  StateStore states;
  const auto arenas = make_arenas();
  const std::vector<Device*> devices{fast.get()};
  Program first(graph, on_one_device(graph), operators, devices, states, arenas, {});
  Program second(small, on_one_device(small), operators, devices, states, arenas, {});
  const HostTensor start = states.read("fc1.weight");
  run_step(first, random_feeds(graph, 1, 1), 0);
  const HostTensor after = states.read("fc1.weight");
  EXPECT_NE(start.as<float>()[0], after.as<float>()[0]);
  run_step(second, random_feeds(small, 1, 1), 0);
  EXPECT_NE(after.as<float>()[0], states.read("fc1.weight").as<float>()[0]);
  states.write("fc1.weight", start);
  EXPECT_EQ(start.as<float>()[0], states.read("fc1.weight").as<float>()[0]);
}

TEST_F(ProgramTest, BadLabelIsReportedWithItsPath) {
  const Graph graph = mlp_training(operators, 4, {7, 3}, Update::sgd);
  OwnProgram own = make_program(graph, operators, *plain);
  Feeds feeds = random_feeds(graph, 1, 1);
  for (auto& [name, tensor] : feeds) {
    if (name == "labels") tensor.as<std::int64_t>()[1] = 17;
  }
  run_step(*own.program, feeds, 0);
  const auto error = own.program->error_in(own.program->errors());
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->kind, ErrorWord::bad_label);
  EXPECT_EQ(error->path, "loss");
  EXPECT_EQ(error->value, 17);
}

TEST_F(ProgramTest, ProbeSeesEveryKernel) {
  const Graph graph = mlp_training(operators, 4, {7, 3}, Update::sgd);
  OwnProgram own = make_program(graph, operators, *plain);
  int begun = 0, ended = 0;
  own.program->set_probe([&](NodeId, bool begin) { ++(begin ? begun : ended); });
  run_step(*own.program, random_feeds(graph, 1, 1), 0);
  own.program->set_probe(nullptr);
  int kernels = 0;
  for (const LoweredNode& node : own.program->lowered().nodes) kernels += node.kernel != nullptr;
  EXPECT_EQ(begun, kernels);
  EXPECT_EQ(ended, kernels);
}

}  // namespace
}  // namespace tandem::testing
