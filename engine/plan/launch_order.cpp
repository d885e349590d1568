// One list of all queues' instructions in which a single thread can launch them: what devices may
// start comes first, so that they work while the host computes.
#include <cassert>

#include "engine/plan/planning_steps.h"

namespace tandem {

void order_launches(Plan& plan) {
  const std::size_t queues = plan.queues.size();
  std::vector<std::size_t> next(queues, 0);
  std::vector<char> recorded(plan.events, 0);
  // Launches what the queue can run without waiting for an event that is not launched yet.
  auto advance = [&](std::size_t q, std::size_t most) {
    const std::vector<Instruction>& list = plan.queues[q].instructions;
    std::size_t launched = 0;
    while (next[q] < list.size() && launched < most) {
      const Instruction& instruction = list[next[q]];
      if (instruction.kind == Instruction::Kind::wait && instruction.steps_back == 0 &&
          !recorded[instruction.event]) {
        break;
      }
      if (instruction.kind == Instruction::Kind::record) recorded[instruction.event] = 1;
      plan.launches.push_back({static_cast<int>(q), static_cast<int>(next[q])});
      ++next[q];
      ++launched;
    }
    return launched;
  };
  // Slots are filled when a step begins and read when it ends; between them the host's own queue
  // advances by one instruction whenever no device can.
  std::vector<std::size_t> feeds, devices, reads;
  const std::size_t lane = 0;  // `make_items` puts it first
  for (std::size_t q = 0; q < queues; ++q) {
    const Queue& queue = plan.queues[q];
    if (queue.role == Queue::Role::feed) {
      feeds.push_back(q);
    } else if (queue.role == Queue::Role::read) {
      reads.push_back(q);
    } else if (q != lane) {
      devices.push_back(q);
    }
  }
  const std::size_t all = static_cast<std::size_t>(-1);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t q : feeds) moved = advance(q, all) > 0 || moved;
    for (bool more = true; more;) {
      more = false;
      for (std::size_t q : devices) more = advance(q, all) > 0 || more;
      moved = moved || more;
    }
    if (advance(lane, 1) > 0) {
      moved = true;
    } else if (!moved) {
      for (std::size_t q : reads) moved = advance(q, all) > 0 || moved;
    }
  }
  for (std::size_t q = 0; q < queues; ++q) {
    assert(next[q] == plan.queues[q].instructions.size() && "queues wait for each other for ever");
  }
}

}  // namespace tandem
