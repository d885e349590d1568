// Activations that wait for backward on the host, and copies that come back in time: plans, memory,
// order and results.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

const std::vector<std::int64_t> offloaded_widths(13, 128);

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class OffloadTest : public ::testing::Test {
 protected:
  // Everything on the accelerator.
  static Placement on_device(const Graph& graph, Activations acts, int lookahead = 1) {
    Placement placement;
    placement.devices = {"cpu", "emulated:0"};
    placement.nodes.assign(graph.nodes.size(), {1, "test", acts, lookahead});
    placement.states.assign(graph.states.size(), {1, 1, "test"});
    return placement;
  }

  // Weights at home on the cpu, read on the accelerator.
  static Placement streamed(const Graph& graph, int lookahead) {
    Placement placement = on_device(graph, Activations::keep);
    for (std::size_t s = 0; s < graph.states.size(); ++s)
      placement.states[s] = {0, 0, "test", lookahead};
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      if (graph.nodes[n].phase == Phase::update) placement.nodes[n].device = 0;
    }
    return placement;
  }

  OwnProgram compiled(const Graph& graph, const Placement& placement) {
    OwnProgram own = make_program(graph, operators, machine.devices, placement);
    EXPECT_EQ(joined(verify(own.program->plan(), own.program->lowered())), "");
    return own;
  }

  std::string difference(const Graph& graph, const Placement& placement, double tolerance) {
    const std::string found =
        program_difference(graph, operators, machine.devices, placement, 3, tolerance);
    return found + joined(machine.monitor->order_errors());
  }

  static std::size_t peak(const OwnProgram& own) { return own.program->plan().memory[1].peak; }

  // Per queue role: names of copied values.
  static std::vector<std::string> copies(const OwnProgram& own, Queue::Role role) {
    std::vector<std::string> names;
    const Graph& graph = own.program->lowered().graph;
    for (const Queue& queue : own.program->plan().queues) {
      if (queue.role != role) continue;
      for (const Instruction& i : queue.instructions) {
        if (i.kind == Instruction::Kind::copy)
          names.push_back(graph.value(graph.node(i.node).outputs[0]).name);
      }
    }
    return names;
  }

  const OperatorSet operators = all_operators();
  Machine machine{1};
};

TEST_F(OffloadTest, DeepPerceptronNeedsLessMemoryThere) {
  const Graph graph = mlp_training(operators, 512, offloaded_widths, Update::sgd);
  const OwnProgram kept = compiled(graph, on_device(graph, Activations::keep));
  const OwnProgram away = compiled(graph, on_device(graph, Activations::offload));
  EXPECT_LT(peak(away), peak(kept) * 2 / 3);
  EXPECT_GT(away.program->plan().memory[0].peak, kept.program->plan().memory[0].peak);
}

TEST_F(OffloadTest, OneCopyOutAndOneBack) {
  const Graph graph = mlp_training(operators, 64, {64, 64, 64, 64}, Update::sgd);
  const OwnProgram kept = compiled(graph, on_device(graph, Activations::keep));
  const OwnProgram away = compiled(graph, on_device(graph, Activations::offload));
  const auto out = copies(away, Queue::Role::copy_out), in = copies(away, Queue::Role::copy_in);
  int back = 0;
  for (const std::string& name : in) {
    if (!name.ends_with("@emulated:0/backward")) continue;
    ++back;
    const std::string value = name.substr(0, name.find('@'));
    EXPECT_EQ(std::count(out.begin(), out.end(), value + "@cpu"), 1) << name;
  }
  EXPECT_GE(back, 2);  // the results of both Relus
  const auto more = [](const auto& after, const auto& before) {
    return static_cast<int>(after.size()) - static_cast<int>(before.size());
  };
  EXPECT_EQ(more(in, copies(kept, Queue::Role::copy_in)), back);
  EXPECT_LE(more(out, copies(kept, Queue::Role::copy_out)), back);  // outputs go there anyway
}

TEST_F(OffloadTest, ComesBackAheadOfItsReaderAndNotAtTheStart) {
  const Graph graph = mlp_training(operators, 512, offloaded_widths, Update::sgd);
  const OwnProgram away = compiled(graph, on_device(graph, Activations::offload));
  const Graph& lowered = away.program->lowered().graph;
  const auto readers = readers_of(lowered);
  int back = 0;
  for (std::size_t n = 0; n < lowered.nodes.size(); ++n) {
    const Node& node = lowered.nodes[n];
    if (node.op->name != "Transfer" || node.phase != Phase::backward ||
        away.program->lowered().nodes[n].device != 1) {
      continue;
    }
    ++back;
    ASSERT_FALSE(readers[node.outputs[0].index].empty());
    const auto reader = static_cast<std::size_t>(readers[node.outputs[0].index][0].index);
    EXPECT_GT(reader, n);
    EXPECT_LT(reader - n, 16u) << node.path;  // nodes, copies among them
  }
  EXPECT_GT(back, 8);
}

TEST_F(OffloadTest, ResultsAreTheSame) {
  for (int lookahead : {0, 1, 3}) {
    SCOPED_TRACE(lookahead);
    const Graph perceptron = mlp_training(operators, 16, {48, 40, 40, 40, 10}, Update::adam);
    EXPECT_EQ(difference(perceptron, on_device(perceptron, Activations::offload, lookahead), 5e-5),
              "");
    const Graph attention = attention_training(operators);
    EXPECT_EQ(difference(attention, on_device(attention, Activations::offload, lookahead), 2e-4),
              "");
    const Graph convolution = convolution_training(operators);
    EXPECT_EQ(
        difference(convolution, on_device(convolution, Activations::offload, lookahead), 2e-4), "");
  }
}

TEST_F(OffloadTest, RandomPlacementsAndActs) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    for (const Graph& graph : {mlp_training(operators, 16, {40, 40, 40, 40, 8}, Update::momentum),
                               attention_training(operators), convolution_training(operators)}) {
      std::mt19937_64 random(seed);
      Placement placement = random_placement(graph, machine.devices, seed);
      for (PlacedNode& node : placement.nodes) {
        node.acts = static_cast<Activations>(random() % 3);
        node.lookahead = static_cast<int>(random() % 3);
      }
      for (PlacedState& state : placement.states) state.lookahead = static_cast<int>(random() % 3);
      ASSERT_EQ(difference(graph, placement, 2e-4), "");
    }
  }
}

TEST_F(OffloadTest, LookaheadBoundsTheRoomOfFetchedWeights) {
  const Graph graph = mlp_training(operators, 8, std::vector<std::int64_t>(13, 256), Update::sgd);
  std::map<int, std::size_t> room;
  for (int lookahead : {0, 1, 3, 12})
    room[lookahead] = peak(compiled(graph, streamed(graph, lookahead)));
  const std::size_t weight = 256 * 256 * 4;
  EXPECT_LT(room[0], room[1]);
  EXPECT_LT(room[1], room[3]);
  EXPECT_LT(room[3], room[12]);
  EXPECT_LT(room[1] + weight, room[12]);  // gradients on their way to the cpu take most of it
  for (int lookahead : {0, 1, 3}) {
    SCOPED_TRACE(lookahead);
    const Graph small = mlp_training(operators, 16, {48, 40, 40, 40, 10}, Update::adam);
    EXPECT_EQ(difference(small, streamed(small, lookahead), 5e-5), "");
  }
}

TEST_F(OffloadTest, EveryWaitIsNeeded) {
  const Graph graph = mlp_training(operators, 64, {64, 64, 64, 64, 64}, Update::sgd);
  for (const Placement& placement :
       {on_device(graph, Activations::offload), streamed(graph, 1), streamed(graph, 0)}) {
    const OwnProgram own = compiled(graph, placement);
    const Plan& plan = own.program->plan();
    for (std::size_t q = 0; q < plan.queues.size(); ++q) {
      for (std::size_t i = 0; i < plan.queues[q].instructions.size(); ++i) {
        if (plan.queues[q].instructions[i].kind != Instruction::Kind::wait) continue;
        Plan broken = plan;
        broken.queues[q].instructions.erase(broken.queues[q].instructions.begin() +
                                            static_cast<std::ptrdiff_t>(i));
        EXPECT_FALSE(verify(broken, own.program->lowered()).empty())
            << "wait " << i << " of " << plan.queues[q].name;
      }
    }
  }
}

}  // namespace
}  // namespace tandem::testing
