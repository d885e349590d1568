// A step that lacks one wait of its plan: the clocks of the emulated devices see it whatever the
// real timing was, and name both operators.
#include <gtest/gtest.h>

#include <random>

#include "tests/engine/plan/missing_wait.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

constexpr int steps = 3;  // a wait may be for the step before, and the first step waits for nothing

class MissingWaitRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "these runs race on purpose";
#endif
  }

  /// The monitor's errors in a run without that wait, and the two operators that it keeps apart.
  std::vector<std::string> errors_without(const Graph& graph, int accelerators, std::uint64_t seed,
                                          const Launch& wait, std::string& first,
                                          std::string& second) {
    Machine machine(accelerators);
    const ProgramOptions options = one_slot();
    CompiledProgram intact = compile(graph, machine, seed);
    const KeptApart pair = kept_apart(intact.plan, wait);
    first = monitored_name(intact.plan, intact.lowered, *pair.first);
    second = monitored_name(intact.plan, intact.lowered, *pair.second);
    CompiledProgram broken = compile(graph, machine, seed);
    erase_wait(broken.plan, wait);
    OwnProgram own;
    own.program = std::make_unique<Program>(std::move(broken), own.states, make_arenas(), options);
    for (int step = 0; step < steps; ++step) {
      run_step(*own.program, random_feeds(graph, 5, step + 1), static_cast<std::uint64_t>(step));
    }
    machine.synchronize();
    return machine.monitor->order_errors();
  }

  /// Takes waits out, one in each run: all of them, or that many by chance.
  void expect_missed(const Graph& graph, int accelerators, std::uint64_t seed,
                     std::size_t sample = static_cast<std::size_t>(-1)) {
    std::vector<Launch> waits;
    {
      Machine machine(accelerators);
      waits = waits_of(compile(graph, machine, seed).plan);
    }
    ASSERT_FALSE(waits.empty());
    std::shuffle(waits.begin(), waits.end(), std::mt19937_64(seed));
    waits.resize(std::min(waits.size(), sample));
    for (const Launch& wait : waits) {
      std::string first, second;
      const std::vector<std::string> errors =
          errors_without(graph, accelerators, seed, wait, first, second);
      const bool named = std::any_of(errors.begin(), errors.end(), [&](const std::string& error) {
        return error.find("'" + first + "' (") != std::string::npos &&
               error.find("'" + second + "' (") != std::string::npos &&
               error.find("no event orders them") != std::string::npos;
      });
      EXPECT_TRUE(named) << "wait " << wait.index << " of queue " << wait.queue << ", placement "
                         << seed << ": '" << first << "' before '" << second
                         << "'; errors: " << (errors.empty() ? "none" : errors[0]);
    }
  }

  /// With a slot of its own for each step, what the plan says about one slot would not be tested.
  static ProgramOptions one_slot() {
    ProgramOptions options;
    options.input_slots = options.output_slots = 1;
    return options;
  }
  CompiledProgram compile(const Graph& graph, Machine& machine, std::uint64_t seed) const {
    return compile_program(graph, random_placement(graph, machine.devices, seed), operators,
                           machine.devices, one_slot());
  }

  const OperatorSet operators = all_operators();
};

TEST_F(MissingWaitRunTest, EveryWaitOfASmallPlan) {
  const Graph graph = mlp_training(operators, 4, {7, 6, 3}, Update::momentum);
  for (std::uint64_t seed = 0; seed < 3; ++seed) expect_missed(graph, 1, seed);
}
TEST_F(MissingWaitRunTest, Perceptrons) {
  const Graph graph = mlp_training(operators, 4, {7, 6, 5, 3}, Update::adam);
  for (std::uint64_t seed = 10; seed < 14; ++seed) expect_missed(graph, 1, seed, 8);
}
TEST_F(MissingWaitRunTest, Convolutions) {
  const Graph graph = convolution_training(operators);
  for (std::uint64_t seed = 0; seed < 3; ++seed) expect_missed(graph, 1, seed, 8);
}
TEST_F(MissingWaitRunTest, AttentionOnThreeDevices) {
  const Graph graph = attention_training(operators);
  for (std::uint64_t seed = 0; seed < 3; ++seed) expect_missed(graph, 2, seed, 8);
}

}  // namespace
}  // namespace tandem::testing
