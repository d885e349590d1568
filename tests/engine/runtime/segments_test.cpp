// Which launches of a plan become one graph: a whole step on one device; otherwise a segment ends
// where another queue has to continue, or has to be waited for.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/runtime/segments.h"
#include "tests/engine/runtime/machine.h"
#include "tests/harness/program_check.h"

namespace tandem::testing {
namespace {

using Kind = Instruction::Kind;

class SegmentsTest : public ::testing::Test {
 protected:
  CompiledProgram compile(const Graph& graph, const Placement& placement) {
    return compile_program(graph, placement, operators, machine.devices, {});
  }
  Placement on_accelerator(const Graph& graph) const {
    Placement placement;
    for (const Device* device : machine.devices) placement.devices.push_back(device->name());
    placement.nodes.resize(graph.nodes.size(), {1, "test"});
    placement.states.resize(graph.states.size(), {1, 1, "test"});
    return placement;
  }

  const OperatorSet operators = all_operators();
  Machine machine{2};
};

const Instruction& at(const Plan& plan, std::size_t launch) {
  return plan.queues[plan.launches[launch].queue].instructions[plan.launches[launch].index];
}

std::size_t kernels_of(const Plan& plan, int device) {
  std::size_t kernels = 0;
  for (const Queue& queue : plan.queues) {
    if (queue.device != device) continue;
    for (const Instruction& i : queue.instructions) kernels += i.kind == Kind::run;
  }
  return kernels;
}

/// Everything in this step that waits for the event: its queue, and the instruction after the
/// waits.
std::vector<std::pair<const Queue*, const Instruction*>> waiting_for(const Plan& plan, int event) {
  std::vector<std::pair<const Queue*, const Instruction*>> found;
  for (const Queue& queue : plan.queues) {
    for (std::size_t i = 0; i < queue.instructions.size(); ++i) {
      const Instruction& wait = queue.instructions[i];
      if (wait.kind != Kind::wait || wait.event != event || wait.steps_back > 0) continue;
      while (queue.instructions[i].kind == Kind::wait) ++i;
      found.emplace_back(&queue, &queue.instructions[i]);
    }
  }
  return found;
}

bool accesses_only(const Plan& plan, const Instruction& copy, bool write, BufferKind kind) {
  return std::all_of(copy.accesses.begin(), copy.accesses.end(), [&](const Access& access) {
    return access.write != write || plan.buffers[access.buffer].kind == kind;
  });
}

void expect_sound(const Plan& plan, const Segment& segment) {
  ASSERT_LT(segment.begin, segment.end);
  ASSERT_LE(segment.end, plan.launches.size());
  EXPECT_GE(segment.kernels.size(), 4u);
  EXPECT_EQ(plan.queues[segment.queue].role, Queue::Role::compute);
  EXPECT_NE(plan.queues[segment.queue].device, 0);
  EXPECT_EQ(segment.kernels.front(), segment.begin);
  EXPECT_EQ(segment.kernels.back() + 1, segment.end);
  std::set<std::size_t> all;
  for (const auto* part : {&segment.kernels, &segment.waits, &segment.records}) {
    EXPECT_TRUE(std::is_sorted(part->begin(), part->end()));
    all.insert(part->begin(), part->end());
  }
  EXPECT_EQ(all.size(), segment.kernels.size() + segment.waits.size() + segment.records.size());
  EXPECT_EQ(all.size(), segment.end - segment.begin);
  for (const std::size_t launch : all) {
    EXPECT_EQ(plan.launches[launch].queue, segment.queue);
    EXPECT_GE(launch, segment.begin);
  }
  for (const std::size_t kernel : segment.kernels) EXPECT_EQ(at(plan, kernel).kind, Kind::run);
  for (const std::size_t wait : segment.waits) {
    EXPECT_EQ(at(plan, wait).kind, Kind::wait);
    if (at(plan, wait).steps_back > 0) continue;
    // The event is recorded earlier, by a queue that has copied nothing but fed inputs until then.
    std::size_t recorded = 0;
    for (std::size_t i = 0; i < plan.launches.size(); ++i) {
      if (at(plan, i).kind == Kind::record && at(plan, i).event == at(plan, wait).event)
        recorded = i;
    }
    EXPECT_LT(recorded, segment.begin);
    const Launch& record = plan.launches[recorded];
    EXPECT_EQ(plan.queues[record.queue].role, Queue::Role::copy_in);
    for (int i = 0; i < record.index; ++i) {
      const Instruction& before = plan.queues[record.queue].instructions[i];
      if (before.kind != Kind::copy) continue;
      EXPECT_TRUE(accesses_only(plan, before, false, BufferKind::input));
    }
  }
  for (const std::size_t record : segment.records) {
    EXPECT_EQ(at(plan, record).kind, Kind::record);
    for (const auto& [queue, waiting] : waiting_for(plan, at(plan, record).event)) {
      EXPECT_EQ(queue->role, Queue::Role::copy_out);
      EXPECT_TRUE(accesses_only(plan, *waiting, true, BufferKind::output));
    }
  }
}

TEST_F(SegmentsTest, AStepOnOneDeviceIsOne) {
  for (const Graph& graph : {mlp_training(operators, 4, {7, 6, 5, 3}, Update::adam),
                             convolution_training(operators), attention_training(operators)}) {
    const CompiledProgram program = compile(graph, on_accelerator(graph));
    const std::vector<Segment> segments = find_segments(program.plan, program.lowered);
    ASSERT_EQ(segments.size(), 1u);
    expect_sound(program.plan, segments[0]);
    EXPECT_EQ(segments[0].kernels.size(), kernels_of(program.plan, 1));
    // What is fed has two places; every one is read by some kernel.
    std::set<int> doubled;
    for (std::size_t b = 0; b < program.plan.buffers.size(); ++b) {
      if (program.plan.buffers[b].copies > 1) doubled.insert(static_cast<int>(b));
    }
    EXPECT_FALSE(doubled.empty());
    EXPECT_EQ(std::set<int>(segments[0].slots.begin(), segments[0].slots.end()), doubled);
  }
}

TEST_F(SegmentsTest, TheHostAloneHasNone) {
  const Graph graph = mlp_training(operators, 4, {7, 6, 5, 3}, Update::adam);
  Placement placement = on_accelerator(graph);
  for (auto& node : placement.nodes) node.device = 0;
  for (auto& state : placement.states) state = {0, 0, "test"};
  const CompiledProgram program = compile(graph, placement);
  EXPECT_TRUE(find_segments(program.plan, program.lowered).empty());
}

// A gradient that the host's update needs leaves at once: its copy waits for no further kernel.
TEST_F(SegmentsTest, WhatOthersGoOnWithEndsASegment) {
  const Graph graph = attention_training(operators);
  std::size_t cuts = 0, found = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    // Mostly on one accelerator: long segments with cuts between them.
    Placement placement = random_placement(graph, machine.devices, seed);
    for (std::size_t n = 0; n < placement.nodes.size(); ++n) {
      if (n % 16 != seed % 16) placement.nodes[n].device = 1;
    }
    for (std::size_t s = 0; s < graph.states.size(); ++s) {
      const NodeId writer = graph.value(graph.states[s].final).producer;
      const int home = writer ? placement.nodes[writer.index].device : 1;
      placement.states[s] = {home, home, "test"};
    }
    const CompiledProgram program = compile(graph, placement);
    const Plan& plan = program.plan;
    const std::vector<Segment> segments = find_segments(plan, program.lowered);
    std::size_t last = 0;
    for (const Segment& segment : segments) {
      expect_sound(plan, segment);
      EXPECT_GE(segment.begin, last);
      last = segment.end;
      ++found;
      cuts += segment.kernels.size() < kernels_of(plan, plan.queues[segment.queue].device);
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(found, 60u);
  EXPECT_GT(cuts, 60u);
}

}  // namespace
}  // namespace tandem::testing
