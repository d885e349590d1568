// Offsets in the arena. Two buffers may overlap only where all uses of one come before the first
// use of the other, in the same step and across the step edge.
#include <algorithm>
#include <numeric>

#include "engine/plan/plan_parts.h"

namespace tandem {
namespace {

struct Life {
  int buffer = 0;
  std::size_t bytes = 0;
  int first = 0, last = 0;         // in the list of all items
  std::vector<int> firsts, lasts;  // per queue that uses it: first and last item
};

class Placer {
 public:
  Placer(const std::vector<PlannedItem>& items, const Plan& plan, int device)
      : items_(items), plan_(plan) {
    std::vector<std::vector<int>> users(plan.buffers.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      for (const Access& access : items[i].instruction.accesses) {
        if (users[access.buffer].empty() || users[access.buffer].back() != static_cast<int>(i)) {
          users[access.buffer].push_back(static_cast<int>(i));
        }
      }
    }
    for (const PlannedItem& item : items) {
      length_.resize(std::max<std::size_t>(length_.size(), item.queue + 1), 0);
      ++length_[item.queue];
    }
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      if (plan.buffers[b].device != device || !plan.buffers[b].in_arena() || users[b].empty())
        continue;
      Life life;
      life.buffer = static_cast<int>(b);
      const Buffer& buffer = plan.buffers[b];
      life.bytes = aligned((buffer.copies - 1) * buffer.stride + buffer.bytes);
      life.first = users[b].front();
      life.last = users[b].back();
      if (buffer.copies > 1) {  // filled while the step before is at work: it is always alive
        life.first = 0;
        life.last = static_cast<int>(items.size()) - 1;
      }
      life.firsts.assign(length_.size(), -1);
      life.lasts.assign(length_.size(), -1);
      for (int item : users[b]) {
        const int queue = items[item].queue;
        if (life.firsts[queue] < 0) life.firsts[queue] = item;
        life.lasts[queue] = item;
      }
      lives_.push_back(std::move(life));
    }
  }

  const std::vector<Life>& lives() const { return lives_; }

  // All uses of a end before any use of b starts, and b's end before a's of the next step.
  bool apart(const Life& a, const Life& b) const {
    if (a.last >= b.first) return false;
    return before(a.lasts, 0, b.firsts, 0) && before(b.lasts, 0, a.firsts, 1);
  }

  // Each buffer at the lowest place that is free of those it may meet.
  std::size_t place(const std::vector<std::size_t>& order,
                    std::vector<std::size_t>& offsets) const {
    offsets.assign(lives_.size(), 0);
    std::vector<std::size_t> placed;  // by offset
    std::size_t end = 0;
    for (std::size_t i : order) {
      std::size_t best = 0, best_gap = static_cast<std::size_t>(-1), top = 0;
      bool found = false;
      for (std::size_t j : placed) {
        if (apart(lives_[i], lives_[j]) || apart(lives_[j], lives_[i])) continue;
        if (offsets[j] > top && offsets[j] - top >= lives_[i].bytes &&
            offsets[j] - top < best_gap) {
          best = top;
          best_gap = offsets[j] - top;
          found = true;
        }
        top = std::max(top, offsets[j] + lives_[j].bytes);
      }
      offsets[i] = found ? best : top;
      end = std::max(end, offsets[i] + lives_[i].bytes);
      const auto at =
          std::upper_bound(placed.begin(), placed.end(), i,
                           [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; });
      placed.insert(at, i);
    }
    return end;
  }

 private:
  bool before(const std::vector<int>& lasts, int step_of_last, const std::vector<int>& firsts,
              int step_of_first) const {
    for (int last : lasts) {
      if (last < 0) continue;
      const int queue = items_[last].queue;
      const int end = items_[last].position + step_of_last * length_[queue];
      for (int first : firsts) {
        if (first >= 0 && items_[first].clock[step_of_first][queue] <= end) return false;
      }
    }
    return true;
  }

  const std::vector<PlannedItem>& items_;
  const Plan& plan_;
  std::vector<int> length_;
  std::vector<Life> lives_;
};

void report(const Placer& placer, const std::vector<PlannedItem>& items, const Lowered& lowered,
            const Plan& plan, int device, MemoryUse& use) {
  std::size_t other = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.device != device || buffer.in_arena()) continue;
    if (buffer.kind == BufferKind::parameter) {
      use.parameters += buffer.bytes;
    } else if (buffer.kind == BufferKind::state) {
      use.state += buffer.bytes;
    } else {
      other += buffer.bytes;
    }
    const bool in_ring = buffer.kind == BufferKind::input || buffer.kind == BufferKind::output;
    if (!in_ring) other += aligned(buffer.bytes) - buffer.bytes;
  }
  std::vector<std::vector<const Life*>> starts(items.size() + 1), ends(items.size() + 1);
  for (const Life& life : placer.lives()) {
    starts[life.first].push_back(&life);
    ends[life.last + 1].push_back(&life);
  }
  std::size_t live[3] = {0, 0, 0};  // gradients, activations, workspace
  auto part = [&](const Life* life) -> std::size_t& {
    const BufferKind kind = plan.buffers[life->buffer].kind;
    return live[kind == BufferKind::gradient ? 0 : kind == BufferKind::workspace ? 2 : 1];
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (const Life* life : ends[i]) part(life) -= life->bytes;
    for (const Life* life : starts[i]) part(life) += life->bytes;
    const std::size_t now = live[0] + live[1] + live[2];
    if (now <= use.lower_bound) continue;
    use.lower_bound = now;
    use.gradients = live[0];
    use.activations = live[1];
    use.workspace = live[2];
    const NodeId node = items[i].instruction.node;
    use.peak_at = node ? lowered.graph.node(node).path : "";
  }
  use.peak = use.arena + use.parameters + use.state + other;
}

}  // namespace

void place_buffers(const std::vector<PlannedItem>& items, const Lowered& lowered, Plan& plan) {
  plan.memory.assign(lowered.devices.size(), {});
  for (std::size_t d = 0; d < lowered.devices.size(); ++d) {
    const Placer placer(items, plan, static_cast<int>(d));
    const std::vector<Life>& lives = placer.lives();
    std::vector<std::size_t> order(lives.size()), offsets, best;
    std::size_t smallest = static_cast<std::size_t>(-1);
    auto attempt = [&](auto less) {
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](std::size_t a, std::size_t b) { return less(lives[a], lives[b]); });
      const std::size_t end = placer.place(order, offsets);
      if (end >= smallest) return;
      smallest = end;
      best = offsets;
    };
    attempt([](const Life& a, const Life& b) { return a.bytes > b.bytes; });
    attempt([](const Life& a, const Life& b) { return a.last - a.first > b.last - b.first; });
    attempt([](const Life& a, const Life& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < lives.size(); ++i) plan.buffers[lives[i].buffer].offset = best[i];
    plan.memory[d].arena = lives.empty() ? 0 : smallest;
    report(placer, items, lowered, plan, static_cast<int>(d), plan.memory[d]);
  }
}

}  // namespace tandem
