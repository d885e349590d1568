// Plans over several devices carry no wait that could be left out, and the verifier misses each.
#include "tests/engine/plan/missing_wait.h"

#include <gtest/gtest.h>

#include "engine/runtime/compile.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

class MissingWaitTest : public ::testing::Test {
 protected:
  const OperatorSet operators = all_operators();

  /// Takes every wait of the plans out, one at a time.
  void expect_all_missed(const Graph& graph, int accelerators, int placements) {
    const Machine machine(accelerators);
    int waits = 0;
    for (int seed = 0; seed < placements; ++seed) {
      SCOPED_TRACE("placement " + std::to_string(seed));
      const Placement placement =
          random_placement(graph, machine.devices, static_cast<std::uint64_t>(seed));
      const CompiledProgram compiled =
          compile_program(graph, placement, operators, machine.devices, {});
      for (const Launch& wait : waits_of(compiled.plan)) {
        ++waits;
        Plan broken = compiled.plan;
        erase_wait(broken, wait);
        const std::vector<std::string> wrong = verify(broken, compiled.lowered);
        EXPECT_TRUE(missed(compiled, wait, wrong))
            << "wait " << wait.index << " of " << compiled.plan.queues[wait.queue].name << ": "
            << (wrong.empty() ? "nothing is wrong" : wrong[0]);
      }
    }
    EXPECT_GT(waits, 10 * placements);
  }

  /// Whether a line names both instructions that the wait keeps apart, or buffers of theirs that
  /// share memory.
  static bool missed(const CompiledProgram& compiled, Launch wait,
                     const std::vector<std::string>& wrong) {
    const KeptApart pair = kept_apart(compiled.plan, wait);
    return std::any_of(wrong.begin(), wrong.end(), [&](const std::string& line) {
      return line.starts_with("not ordered on")
                 ? line.find(name(compiled, *pair.first)) != std::string::npos &&
                       line.find(name(compiled, *pair.second)) != std::string::npos
                 : line.starts_with("live at the same time") &&
                       touches(compiled, *pair.first, line) &&
                       touches(compiled, *pair.second, line);
    });
  }
  static std::string name(const CompiledProgram& compiled, const Instruction& instruction) {
    return "'" +
           (instruction.node ? compiled.lowered.graph.node(instruction.node).path
                             : compiled.plan.buffers[instruction.buffer].name) +
           "' on ";
  }
  static bool touches(const CompiledProgram& compiled, const Instruction& instruction,
                      const std::string& line) {
    return std::any_of(instruction.accesses.begin(), instruction.accesses.end(),
                       [&](const Access& access) {
                         return line.find("'" + compiled.plan.buffers[access.buffer].name + "'") !=
                                std::string::npos;
                       });
  }
};

TEST_F(MissingWaitTest, Perceptrons) {
  for (Update update : {Update::sgd, Update::momentum, Update::adam})
    expect_all_missed(mlp_training(operators, 4, {7, 6, 5, 3}, update), 1, 10);
}
TEST_F(MissingWaitTest, Convolutions) { expect_all_missed(convolution_training(operators), 1, 5); }
TEST_F(MissingWaitTest, Attention) { expect_all_missed(attention_training(operators), 1, 5); }
TEST_F(MissingWaitTest, ThreeDevices) {
  expect_all_missed(mlp_training(operators, 4, {7, 6, 5, 3}, Update::adam), 2, 10);
  expect_all_missed(attention_training(operators), 2, 5);
}
TEST_F(MissingWaitTest, RandomGraphs) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    expect_all_missed(random_graph(operators, seed), 1, 1);
  }
}

}  // namespace
}  // namespace tandem::testing
