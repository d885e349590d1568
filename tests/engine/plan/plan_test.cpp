// Plans of small networks: free of races, without redundant waits, and the verifier sees what is
// broken.
#include "engine/plan/plan.h"

#include <gtest/gtest.h>

#include "engine/plan/simulate.h"
#include "kernels/reference/reference_kernels.h"
#include "tests/harness/program_check.h"
#include "tests/harness/test_device.h"
#include "tests/harness/test_graphs.h"

namespace tandem::testing {
namespace {

class PlanTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const Graph& graph : {mlp_training(operators, 4, {7, 6, 5, 3}, Update::momentum),
                               convolution_training(operators), attention_training(operators)}) {
      programs.push_back(make_program(graph, operators, *device));
    }
  }

  static bool mentions(const std::vector<std::string>& wrong, const std::string& text) {
    for (const std::string& line : wrong) {
      if (line.find(text) != std::string::npos) return true;
    }
    return false;
  }

  const OperatorSet operators = all_operators();
  std::unique_ptr<Device> device = make_test_device(reference_kernels_as_fast());
  std::vector<OwnProgram> programs;
};

TEST_F(PlanTest, PlansAreFreeOfRaces) {
  for (const OwnProgram& own : programs) {
    EXPECT_EQ(verify(own.program->plan(), own.program->lowered()), std::vector<std::string>{});
  }
}

TEST_F(PlanTest, EveryWaitIsNeeded) {
  for (const OwnProgram& own : programs) {
    const Plan& plan = own.program->plan();
    int waits = 0;
    for (std::size_t q = 0; q < plan.queues.size(); ++q) {
      for (std::size_t i = 0; i < plan.queues[q].instructions.size(); ++i) {
        if (plan.queues[q].instructions[i].kind != Instruction::Kind::wait) continue;
        ++waits;
        Plan broken = plan;
        broken.queues[q].instructions.erase(broken.queues[q].instructions.begin() + i);
        EXPECT_TRUE(mentions(verify(broken, own.program->lowered()), "not ordered"))
            << "wait " << i << " of " << q;
      }
    }
    EXPECT_GE(waits, 3);
  }
}

TEST_F(PlanTest, VerifierRejectsAMissingEdgeAcrossTheStep) {
  for (const OwnProgram& own : programs) {
    Plan plan = own.program->plan();
    bool removed = false;
    for (Queue& queue : plan.queues) {
      if (queue.name != "cpu.feed") continue;
      std::erase_if(queue.instructions, [&](const Instruction& instruction) {
        removed |= instruction.steps_back > 0;
        return instruction.steps_back > 0;
      });
    }
    ASSERT_TRUE(removed);
    EXPECT_TRUE(mentions(verify(plan, own.program->lowered()), "of the next step"));
  }
}

TEST_F(PlanTest, VerifierRejectsOverlappingLiveBuffers) {
  for (const OwnProgram& own : programs) {
    const Plan& plan = own.program->plan();
    int rejected = 0;
    // Two operands of one instruction are live at the same time.
    for (const Queue& queue : plan.queues) {
      for (const Instruction& instruction : queue.instructions) {
        std::vector<int> arena;
        for (const Access& access : instruction.accesses) {
          if (plan.buffers[access.buffer].in_arena()) arena.push_back(access.buffer);
        }
        for (int other : arena) {
          if (other == arena[0]) continue;
          Plan broken = plan;
          broken.buffers[other].offset = broken.buffers[arena[0]].offset;
          broken.memory[0].arena *= 2;
          EXPECT_TRUE(mentions(verify(broken, own.program->lowered()), "live at the same time"));
          ++rejected;
        }
      }
    }
    EXPECT_GT(rejected, 3);
  }
}

TEST_F(PlanTest, VerifierRejectsAReaderAfterTheInPlaceWriter) {
  for (const OwnProgram& own : programs) {
    const Lowered& lowered = own.program->lowered();
    Plan plan = own.program->plan();
    bool moved = false;
    for (Queue& queue : plan.queues) {
      if (queue.name != "cpu") continue;
      // The first kernel that reads a parameter moves to the end, after the update.
      for (std::size_t i = 0; i < queue.instructions.size() && !moved; ++i) {
        for (const Access& access : queue.instructions[i].accesses) {
          if (plan.buffers[access.buffer].kind == BufferKind::parameter && !access.write)
            moved = true;
        }
        if (!moved) continue;
        const Instruction instruction = queue.instructions[i];
        queue.instructions.erase(queue.instructions.begin() + i);
        queue.instructions.push_back(instruction);
      }
    }
    ASSERT_TRUE(moved);
    EXPECT_TRUE(mentions(verify(plan, lowered), "overwrote it"));
  }
}

TEST_F(PlanTest, VerifierRejectsAReaderBeforeTheProducer) {
  const OwnProgram& own = programs[0];
  Plan plan = own.program->plan();
  for (Queue& queue : plan.queues) {
    if (queue.name == "cpu") std::reverse(queue.instructions.begin(), queue.instructions.end());
  }
  EXPECT_FALSE(verify(plan, own.program->lowered()).empty());
}

TEST_F(PlanTest, VerifierRejectsUndeclaredBytes) {
  const OwnProgram& own = programs[0];
  Plan plan = own.program->plan();
  for (Queue& queue : plan.queues) {
    for (Instruction& instruction : queue.instructions) {
      if (instruction.kind == Instruction::Kind::run) instruction.accesses.pop_back();
    }
  }
  EXPECT_TRUE(mentions(verify(plan, own.program->lowered()), "does not declare"));
}

TEST_F(PlanTest, MemoryReportAddsUp) {
  for (const OwnProgram& own : programs) {
    const Plan& plan = own.program->plan();
    const MemoryUse& use = plan.memory[0];
    EXPECT_GE(use.arena, use.lower_bound);
    EXPECT_LE(use.arena, use.lower_bound * 3 / 2);
    EXPECT_EQ(use.lower_bound, use.activations + use.gradients + use.workspace);
    EXPECT_GT(use.peak, use.arena + use.parameters + use.state);
    EXPECT_FALSE(use.peak_at.empty());
  }
}

TEST_F(PlanTest, SimulationFollowsTheProfile) {
  const OwnProgram& own = programs[0];
  const Plan& plan = own.program->plan();
  const Lowered& lowered = own.program->lowered();
  int kernels = 0;
  for (const LoweredNode& node : lowered.nodes) kernels += node.kernel != nullptr;
  DeviceProfile only_overhead{1e30, 1e30, 1e-3, 1e30, 0};
  EXPECT_NEAR(simulate(plan, lowered, {only_overhead}).seconds, 1e-3 * kernels, 1e-9);
  DeviceProfile slow{1e6, 1e30, 0, 1e30, 0}, slower{5e5, 1e30, 0, 1e30, 0};
  EXPECT_NEAR(2 * simulate(plan, lowered, {slow}).seconds,
              simulate(plan, lowered, {slower}).seconds, 1e-9);
  EXPECT_GT(plan.estimated_seconds, 0);
}

TEST_F(PlanTest, PrintsQueuesBuffersAndMemory) {
  const OwnProgram& own = programs[0];
  const std::string text = to_text(own.program->plan(), own.program->lowered());
  for (const char* part :
       {"queue cpu\n", "queue cpu.feed", "queue cpu.read", "feed x", "read loss",
        "of the step before", "parameter fc1.weight", "memory of cpu", "estimated"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

}  // namespace
}  // namespace tandem::testing
