// Puts in events and waits. A conflict inside one queue is ordered by the queue; one between queues
// needs a wait unless the clocks show that an earlier wait already implies it.
#include <algorithm>

#include "engine/plan/planning_steps.h"

namespace tandem {
namespace {

constexpr int max_steps_back = 2;  // where a buffer has two copies

bool ordering_conflict(const Access& a, const Access& b) {
  return (a.write || b.write) && a.begin < b.end && b.begin < a.end;
}

void join(std::vector<int>& clock, const std::vector<int>& other) {
  for (std::size_t q = 0; q < clock.size(); ++q) clock[q] = std::max(clock[q], other[q]);
}

struct Synchroniser {
  std::vector<PlannedItem>& items;
  Plan& plan;
  std::vector<int> length;  // items per queue
  // Per number of steps back and per item: the items of that step that it waits for.
  std::vector<std::vector<int>> waits[max_steps_back + 1];

  explicit Synchroniser(std::vector<PlannedItem>& list, Plan& of) : items(list), plan(of) {
    for (auto& lists : waits) lists.resize(items.size());
    find_conflicts();
  }

  void run() {
    const std::size_t queues = plan.queues.size();
    length.assign(queues, 0);
    for (const PlannedItem& item : items) ++length[item.queue];
    // Goes through steps in a row: in the first, only waits within the step count.
    std::vector<std::vector<int>> now(queues, std::vector<int>(queues, 0));
    for (int step = 0; step <= max_steps_back; ++step) {
      for (std::size_t i = 0; i < items.size(); ++i) advance(static_cast<int>(i), step, now);
    }
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
    for (std::size_t buffer = 0; buffer < uses.size(); ++buffer) {
      const std::vector<Use>& list = uses[buffer];
      std::vector<std::vector<int>>& same = waits[0];
      std::vector<std::vector<int>>& earlier = waits[plan.buffers[buffer].turns];
      if (std::none_of(list.begin(), list.end(), [](const Use& u) { return u.access->write; }))
        continue;
      for (const Use& a : list) {
        for (const Use& b : list) {
          if (items[a.item].queue == items[b.item].queue ||
              !ordering_conflict(*a.access, *b.access))
            continue;
          if (a.item < b.item) same[b.item].push_back(a.item);
          earlier[b.item].push_back(a.item);
        }
      }
    }
  }

  // Where two buffers share bytes, the last uses of one come before the first uses of the other,
  // and the last uses of the other before the next step's first uses of the one.
  void find_overlaps() {
    const std::size_t queues = plan.queues.size();
    struct Life {
      const Buffer* buffer;
      int first, last;                 // items
      std::vector<int> firsts, lasts;  // per queue
    };
    std::vector<Life> lives;
    for (const Buffer& buffer : plan.buffers)
      lives.push_back(
          {&buffer, -1, -1, std::vector<int>(queues, -1), std::vector<int>(queues, -1)});
    for (std::size_t i = 0; i < items.size(); ++i) {
      for (const Access& access : items[i].instruction.accesses) {
        Life& life = lives[access.buffer];
        const int at = static_cast<int>(i), queue = items[i].queue;
        if (life.first < 0) life.first = at;
        if (life.firsts[queue] < 0) life.firsts[queue] = at;
        life.last = life.lasts[queue] = at;
      }
    }
    std::erase_if(lives,
                  [](const Life& life) { return life.first < 0 || !life.buffer->in_arena(); });
    std::stable_sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) {
      return a.buffer->offset < b.buffer->offset;
    });
    const auto order = [&](const Life& before, const Life& after,
                           std::vector<std::vector<int>>& to) {
      for (int last : before.lasts) {
        for (int first : after.firsts) {
          if (last >= 0 && first >= 0 && items[last].queue != items[first].queue)
            to[first].push_back(last);
        }
      }
    };
    for (std::size_t i = 0; i < lives.size(); ++i) {
      for (std::size_t j = i + 1; j < lives.size(); ++j) {
        const Buffer &a = *lives[i].buffer, &b = *lives[j].buffer;
        if (b.offset >= a.offset + a.bytes) break;
        if (a.device != b.device) continue;
        const bool in_order = lives[i].last < lives[j].first;
        const Life& before = in_order ? lives[i] : lives[j];
        const Life& after = in_order ? lives[j] : lives[i];
        order(before, after, waits[0]);
        order(after, before, waits[1]);
      }
    }
  }

  // Drops what the clock covers, and what another candidate's clock covers.
  void reduce(std::vector<int>& candidates, const std::vector<int>& clock) {
    std::sort(candidates.begin(), candidates.end());
    candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
    auto covered = [&](int item, const std::vector<int>& by) {
      return by[items[item].queue] > items[item].position;
    };
    std::vector<int> left;
    for (int item : candidates) {
      bool redundant = covered(item, clock);
      for (int other : candidates) {
        redundant = redundant || (other != item && covered(item, items[other].clock[0]));
      }
      if (!redundant) left.push_back(item);
    }
    candidates = std::move(left);
  }

  void advance(int i, int step, std::vector<std::vector<int>>& now) {
    PlannedItem& item = items[i];
    std::vector<int>& clock = now[item.queue];
    for (int back = 0; back <= step; ++back) {
      std::vector<int>& list = waits[back][i];
      if (back == step) reduce(list, clock);  // all that it may wait for is in the first step
      for (int from : list) join(clock, items[from].clock[step - back]);
    }
    clock[item.queue] = item.position + 1 + step * length[item.queue];
    item.clock[step] = clock;
  }

  void emit() {
    std::vector<int> event(items.size(), -1);
    for (const auto& lists : waits) {
      for (const std::vector<int>& froms : lists) {
        for (int from : froms) {
          if (event[from] < 0) event[from] = plan.events++;
        }
      }
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      std::vector<Instruction>& list = plan.queues[items[i].queue].instructions;
      auto wait = [&](int from, int steps_back) {
        Instruction instruction;
        instruction.kind = Instruction::Kind::wait;
        instruction.event = event[from];
        instruction.steps_back = steps_back;
        list.push_back(std::move(instruction));
      };
      for (int back = 0; back <= max_steps_back; ++back) {
        for (int from : waits[back][i]) wait(from, back);
      }
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

std::vector<ItemOrder> copies_in_turn(const std::vector<PlannedItem>& items, const Lowered& lowered,
                                      const Plan& plan) {
  std::vector<ItemOrder> orders;
  // The nearest item that computes on `device`, from item i on.
  const auto next_to = [&](std::size_t i, int step, int device) {
    for (int j = static_cast<int>(i) + step; j >= 0 && j < static_cast<int>(items.size());
         j += step) {
      const Queue& queue = plan.queues[items[j].queue];
      if (queue.device == device && queue.role == Queue::Role::compute) return j;
    }
    return -1;
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].instruction.kind != Instruction::Kind::copy) continue;
    const Node& node = lowered.graph.node(items[i].instruction.node);
    if (node.attributes.integer("lookahead") < 0) continue;
    const int to = lowered.nodes[items[i].instruction.node.index].device;
    const int from = lowered.values[node.inputs[0].index].device;
    const int at = static_cast<int>(i);
    const int other = to != 0 ? next_to(i, -1, to) : next_to(i, 1, from);
    if (other >= 0) orders.emplace_back(std::min(at, other), std::max(at, other));
  }
  return orders;
}

void set_clocks(std::vector<PlannedItem>& items, Plan& plan, const std::vector<ItemOrder>& orders) {
  Synchroniser synchroniser(items, plan);
  for (const auto& [first, second] : orders) synchroniser.waits[0][second].push_back(first);
  synchroniser.run();
}

void synchronise(std::vector<PlannedItem>& items, Plan& plan, bool by_place) {
  Synchroniser synchroniser(items, plan);
  if (by_place) synchroniser.find_overlaps();
  synchroniser.run();
  synchroniser.emit();
}

}  // namespace tandem
