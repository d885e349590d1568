// Plans with updates in ranges: where they are cut, that the verifier proves it, and what it saves.
#include "engine/plan/ranges.h"

#include <gtest/gtest.h>

#include "engine/plan/simulate.h"
#include "engine/runtime/compile.h"
#include "tests/engine/plan/missing_wait.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

class RangesPlanTest : public ::testing::Test {
 protected:
  // All on the accelerator, but updates and states on the host.
  CompiledProgram compiled(const Graph& graph, std::size_t range_bytes, int run = 1) {
    Placement placement;
    for (const Device* device : machine.devices) placement.devices.push_back(device->name());
    for (const Node& node : graph.nodes)
      placement.nodes.push_back({node.phase == Phase::update ? 0 : run, "test"});
    for (const State& state : graph.states)
      placement.states.push_back({0, state.kind == StateKind::parameter ? run : 0, "test"});
    ProgramOptions options;
    options.lower.range_bytes = range_bytes;
    return compile_program(graph, placement, operators, machine.devices, options);
  }

  static int parts_of(const CompiledProgram& program, const std::string& op,
                      std::int64_t elements) {
    int parts = 0;
    for (const Queue& queue : program.plan.queues) {
      for (const Instruction& instruction : queue.instructions) {
        if (!instruction.node) continue;
        const Node& node = program.lowered.graph.node(instruction.node);
        if (node.op->name == op &&
            program.lowered.graph.type(node.outputs[0]).elements() == elements) {
          parts = std::max(parts, instruction.parts);
        }
      }
    }
    return parts;
  }

  static bool mentions(const std::vector<std::string>& wrong, const std::string& text) {
    return std::any_of(wrong.begin(), wrong.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }

  const OperatorSet operators = all_operators();
  Machine machine{1};
  Graph graph = mlp_training(operators, 8, {70, 300, 300, 3}, Update::adam);
};

constexpr std::size_t no_ranges = std::size_t{1} << 40;

TEST_F(RangesPlanTest, CutsUpdatesThatCross) {
  const CompiledProgram program = compiled(graph, 16 << 10);
  EXPECT_EQ(parts_of(program, "AdamUpdate", 90000), 22);
  EXPECT_EQ(parts_of(program, "Transfer", 90000), 22);
  EXPECT_EQ(parts_of(program, "AdamUpdate", 21000), 6);
  EXPECT_EQ(parts_of(program, "Transfer", 300), 1);
  EXPECT_EQ(parts_of(compiled(graph, std::size_t{16} << 20), "AdamUpdate", 90000), 1);
  // Where nothing crosses nothing is cut.
  EXPECT_EQ(parts_of(compiled(graph, 16 << 10, 0), "AdamUpdate", 90000), 1);
}

TEST_F(RangesPlanTest, RangesKeepTheLimit) {
  for (std::size_t limit : {std::size_t{4096}, std::size_t{5000}, std::size_t{100000}}) {
    const CompiledProgram program = compiled(graph, limit);
    for (std::size_t n = 0; n < program.plan.range_of.size(); ++n) {
      EXPECT_LE(program.plan.range_of[n] * 4, static_cast<std::int64_t>(limit));
      EXPECT_EQ(program.plan.range_of[n] % range_alignment, 0);
    }
  }
}

TEST_F(RangesPlanTest, PartsArePrinted) {
  const CompiledProgram program = compiled(graph, 64 << 10);
  const std::string text = to_text(program.plan, program.lowered);
  for (const char* part : {"AdamUpdate part 1 of 6 cpu.adam_update", "Transfer part 6 of 6 copies",
                           "fc2.weight[0:61440]"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(RangesPlanTest, EveryWaitIsNeeded) {
  const CompiledProgram program = compiled(graph, 64 << 10);
  EXPECT_EQ(verify(program.plan, program.lowered), std::vector<std::string>{});
  for (const Launch& wait : waits_of(program.plan)) {
    Plan broken = program.plan;
    erase_wait(broken, wait);
    EXPECT_FALSE(verify(broken, program.lowered).empty())
        << broken.queues[wait.queue].name << " " << wait.index;
  }
}

TEST_F(RangesPlanTest, VerifierWantsEveryPartOnce) {
  const CompiledProgram program = compiled(graph, 64 << 10);
  const auto broken_by = [&](auto change) {
    Plan plan = program.plan;
    for (Queue& queue : plan.queues) {
      for (std::size_t i = 0; i < queue.instructions.size(); ++i) {
        if (queue.instructions[i].parts == 1 || queue.instructions[i].part != 1) continue;
        change(queue, i);
        return verify(plan, program.lowered);
      }
    }
    return std::vector<std::string>{"nothing was cut"};
  };
  EXPECT_TRUE(mentions(broken_by([](Queue& queue, std::size_t i) {
                         queue.instructions.erase(queue.instructions.begin() +
                                                  static_cast<std::ptrdiff_t>(i));
                       }),
                       "not the whole"));
  EXPECT_TRUE(
      mentions(broken_by([](Queue& queue, std::size_t i) { queue.instructions[i].part = 0; }),
               "runs twice"));
  EXPECT_TRUE(mentions(
      broken_by([](Queue& queue, std::size_t i) { queue.instructions[i].accesses[0].end -= 4; }),
      "does not declare"));
}

TEST_F(RangesPlanTest, StepsAreShorterOverASlowLink) {
  DeviceProfile host, accelerator;
  host.bandwidth = 1e9;                // update of fc2.weight: 28 B an element, 2.5 ms
  accelerator.link_bandwidth = 0.3e9;  // 1.2 ms down, 1.2 ms up
  accelerator.link_latency = 1e-6;
  const auto seconds = [&](std::size_t range_bytes) {
    const CompiledProgram program = compiled(graph, range_bytes);
    return simulate(program.plan, program.lowered, {host, accelerator}).seconds;
  };
  const double whole = seconds(no_ranges), cut = seconds(16 << 10);
  EXPECT_LT(cut, 0.75 * whole) << whole;
}

}  // namespace
}  // namespace tandem::testing
