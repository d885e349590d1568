// Takes single waits out of plans, to see that each of them is missed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace tandem::testing {

inline std::vector<Launch> waits_of(const Plan& plan) {
  std::vector<Launch> waits;
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    const std::vector<Instruction>& list = plan.queues[q].instructions;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].kind == Instruction::Kind::wait)
        waits.push_back({static_cast<int>(q), static_cast<int>(i)});
    }
  }
  return waits;
}

/// Removes a wait from its queue and from the launch order; the rest stays in order.
inline void erase_wait(Plan& plan, Launch wait) {
  std::vector<Instruction>& list = plan.queues[wait.queue].instructions;
  list.erase(list.begin() + wait.index);
  std::erase_if(plan.launches, [&](const Launch& launch) {
    return launch.queue == wait.queue && launch.index == wait.index;
  });
  for (Launch& launch : plan.launches) {
    if (launch.queue == wait.queue && launch.index > wait.index) --launch.index;
  }
}

/// What a wait keeps apart: the instruction before the record, and the one after the wait.
struct KeptApart {
  const Instruction* first = nullptr;
  const Instruction* second = nullptr;
};

inline KeptApart kept_apart(const Plan& plan, Launch wait) {
  KeptApart pair;
  const auto is_event = [](const Instruction& instruction) {
    return instruction.kind == Instruction::Kind::wait ||
           instruction.kind == Instruction::Kind::record;
  };
  const std::vector<Instruction>& list = plan.queues[wait.queue].instructions;
  const int event = list[wait.index].event;
  pair.second = &*std::find_if_not(list.begin() + wait.index, list.end(), is_event);
  for (const Queue& queue : plan.queues) {
    for (std::size_t i = 0; i < queue.instructions.size(); ++i) {
      const Instruction& instruction = queue.instructions[i];
      if (instruction.kind == Instruction::Kind::record && instruction.event == event)
        pair.first = &queue.instructions[i - 1];
    }
  }
  return pair;
}

/// The monitor's name for an instruction: the operator's path, a copy's value, a slot's buffer.
inline std::string monitored_name(const Plan& plan, const Lowered& lowered,
                                  const Instruction& instruction) {
  if (!instruction.node) return plan.buffers[instruction.buffer].name;
  const Node& node = lowered.graph.node(instruction.node);
  return instruction.kind == Instruction::Kind::copy ? lowered.graph.value(node.inputs[0]).name
                                                     : node.path;
}

/// Counts the waits that keep something apart that `is_meant`, and expects each to be missed if
/// removed.
template <class IsMeant>
int expect_missed_waits(const Plan& plan, const Lowered& lowered, IsMeant is_meant) {
  EXPECT_TRUE(verify(plan, lowered).empty());
  int tried = 0;
  for (const Launch& wait : waits_of(plan)) {
    const KeptApart pair = kept_apart(plan, wait);
    if (!is_meant(*pair.first) && !is_meant(*pair.second)) continue;
    Plan broken = plan;
    erase_wait(broken, wait);
    EXPECT_FALSE(verify(broken, lowered).empty())
        << monitored_name(plan, lowered, *pair.first) << " and "
        << monitored_name(plan, lowered, *pair.second);
    ++tried;
  }
  return tried;
}

}  // namespace tandem::testing
