// Puts in events and waits. A conflict inside one queue is ordered by the queue; one between queues
// needs a wait unless the clocks show that an earlier wait already implies it.
#include <algorithm>

#include "engine/plan/plan_parts.h"

namespace tandem {
namespace {

bool conflict(const Access& a, const Access& b) {
  return (a.write || b.write) && a.begin < b.end && b.begin < a.end;
}

void join(std::vector<int>& clock, const std::vector<int>& other) {
  for (std::size_t q = 0; q < clock.size(); ++q) clock[q] = std::max(clock[q], other[q]);
}

struct Synchroniser {
  std::vector<PlannedItem>& items;
  Plan& plan;
  std::vector<int> length;                      // items per queue
  std::vector<std::vector<int>> same, earlier;  // per item: the items that it waits for

  void run() {
    const std::size_t queues = plan.queues.size();
    length.assign(queues, 0);
    for (const PlannedItem& item : items) ++length[item.queue];
    same.resize(items.size());
    earlier.resize(items.size());
    find_conflicts();
    // Two steps in a row: in the first only waits within the step count.
    std::vector<std::vector<int>> now(queues, std::vector<int>(queues, 0));
    for (int step = 0; step < 2; ++step) {
      for (std::size_t i = 0; i < items.size(); ++i) advance(static_cast<int>(i), step, now);
    }
    emit();
  }

  void find_conflicts() {
    struct Use {
      int item;
      const Access* access;
    };
    std::vector<std::vector<Use>> uses(plan.buffers.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      for (const Access& access : items[i].instruction.accesses) {
        uses[access.buffer].push_back({static_cast<int>(i), &access});
      }
    }
    for (const std::vector<Use>& list : uses) {
      if (std::none_of(list.begin(), list.end(), [](const Use& u) { return u.access->write; }))
        continue;
      for (const Use& a : list) {
        for (const Use& b : list) {
          if (items[a.item].queue == items[b.item].queue || !conflict(*a.access, *b.access))
            continue;
          if (a.item < b.item) same[b.item].push_back(a.item);
          earlier[b.item].push_back(a.item);
        }
      }
    }
  }

  // Drops what the clock covers, and what another candidate's clock covers.
  void reduce(std::vector<int>& candidates, int step, const std::vector<int>& clock) {
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    auto covered = [&](int item, const std::vector<int>& by) {
      return by[items[item].queue] > items[item].position + step * length[items[item].queue];
    };
    std::vector<int> left;
    for (int item : candidates) {
      bool redundant = covered(item, clock);
      for (int other : candidates) {
        redundant = redundant || (other != item && covered(item, items[other].clock[step]));
      }
      if (!redundant) left.push_back(item);
    }
    candidates = std::move(left);
  }

  void advance(int i, int step, std::vector<std::vector<int>>& now) {
    PlannedItem& item = items[i];
    std::vector<int>& clock = now[item.queue];
    if (step == 0) reduce(same[i], 0, clock);
    for (int from : same[i]) join(clock, items[from].clock[step]);
    if (step == 1) {
      reduce(earlier[i], 0, clock);
      for (int from : earlier[i]) join(clock, items[from].clock[0]);
    }
    clock[item.queue] = item.position + 1 + step * length[item.queue];
    item.clock[step] = clock;
  }

  void emit() {
    std::vector<int> event(items.size(), -1);
    for (const auto& lists : {&same, &earlier}) {
      for (const std::vector<int>& froms : *lists) {
        for (int from : froms) {
          if (event[from] < 0) event[from] = plan.events++;
        }
      }
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      std::vector<Instruction>& list = plan.queues[items[i].queue].instructions;
      auto wait = [&](int from, bool previous) {
        Instruction instruction;
        instruction.kind = Instruction::Kind::wait;
        instruction.event = event[from];
        instruction.previous_step = previous;
        list.push_back(std::move(instruction));
      };
      for (int from : same[i]) wait(from, false);
      for (int from : earlier[i]) wait(from, true);
      list.push_back(items[i].instruction);
      if (event[i] < 0) continue;
      Instruction record;
      record.kind = Instruction::Kind::record;
      record.event = event[i];
      list.push_back(std::move(record));
    }
  }
};

}  // namespace

void synchronise(std::vector<PlannedItem>& items, Plan& plan) {
  Synchroniser{items, plan, {}, {}, {}}.run();
}

}  // namespace tandem
