// Offsets in the arena. Two buffers may overlap only where all uses of one come before the first
// use of the other, in the same step and across the step edge.
#include <algorithm>
#include <climits>
#include <map>
#include <numeric>

#include "engine/plan/collectives.h"
#include "engine/plan/planning_steps.h"

namespace tandem {
namespace {

struct Life {
  std::vector<int> buffers;  // one, or several that lie side by side
  std::size_t bytes = 0;
  int first = 0, last = 0;  // in the list of all items
  /// Per queue: the position of the last item there that uses it, -1 where none does; and how many
  /// items have surely ended when its first use starts, in the same step and in the next one.
  std::vector<int> ends, reached[2];
  int queue = -1;  // the only one that uses it; -1: several do
};

class Placer {
 public:
  Placer(const std::vector<PlannedItem>& items, const Plan& plan, int device,
         const std::vector<std::vector<int>>& groups) {
    std::vector<int> first(plan.buffers.size());  // per buffer: the first one of its group
    std::iota(first.begin(), first.end(), 0);
    for (const std::vector<int>& group : groups) {
      for (int buffer : group) first[buffer] = group[0];
    }
    std::vector<std::vector<int>> users(plan.buffers.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      for (const Access& access : items[i].instruction.accesses) {
        std::vector<int>& own = users[first[access.buffer]];
        if (own.empty() || own.back() != static_cast<int>(i)) own.push_back(static_cast<int>(i));
      }
    }
    for (const PlannedItem& item : items) queues_ = std::max<std::size_t>(queues_, item.queue + 1);
    for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
      if (plan.buffers[b].device != device || !plan.buffers[b].in_arena() || users[b].empty())
        continue;
      Life life;
      life.buffers = {static_cast<int>(b)};
      const Buffer& buffer = plan.buffers[b];
      life.bytes = aligned((buffer.copies - 1) * buffer.stride + buffer.bytes);
      life.first = users[b].front();
      life.last = users[b].back();
      if (buffer.copies > 1) {  // filled while the step before runs: it is always alive
        life.first = 0;
        life.last = static_cast<int>(items.size()) - 1;
      }
      for (const std::vector<int>& group : groups) {
        if (group[0] != static_cast<int>(b)) continue;
        life.buffers = group;
        life.bytes = 0;
        for (int member : group) life.bytes += aligned(plan.buffers[member].bytes);
      }
      life.ends.assign(queues_, -1);
      for (std::vector<int>& reached : life.reached) reached.assign(queues_, INT_MAX);
      for (int i : users[b]) {
        const PlannedItem& item = items[i];
        const bool starts = life.ends[item.queue] < 0;  // first of its queue; others come later
        for (std::size_t step = 0; starts && step < 2; ++step) {
          for (std::size_t q = 0; q < queues_; ++q)
            life.reached[step][q] = std::min(life.reached[step][q], item.clock[step][q]);
        }
        life.ends[item.queue] = item.position;
      }
      const auto used = [](int end) { return end >= 0; };
      const auto only = std::find_if(life.ends.begin(), life.ends.end(), used);
      if (std::none_of(only + 1, life.ends.end(), used))
        life.queue = static_cast<int>(only - life.ends.begin());
      lives_.push_back(std::move(life));
    }
  }

  const std::vector<Life>& lives() const { return lives_; }

  // Bytes that no placement can do without: those that are alive at one item.
  std::size_t least_bytes() const {
    std::map<int, std::ptrdiff_t> changes;  // by item
    for (const Life& life : lives_) {
      changes[life.first] += static_cast<std::ptrdiff_t>(life.bytes);
      changes[life.last + 1] -= static_cast<std::ptrdiff_t>(life.bytes);
    }
    std::ptrdiff_t alive = 0, most = 0;
    for (const auto& [item, change] : changes) most = std::max(most, alive += change);
    return static_cast<std::size_t>(most);
  }

  // Whether lives a and b, a first in the list, never overlap: all uses of a end before any use of
  // b starts, and those of b end before a's uses in the next step.
  bool apart(const Life& a, const Life& b) const { return before(a, b, 0) && before(b, a, 1); }

  // Places each buffer at the lowest offset where it overlaps none that may be alive with it.
  std::size_t place(const std::vector<std::size_t>& order,
                    std::vector<std::size_t>& offsets) const {
    struct Placed {
      std::size_t begin = 0, end = 0;
      int first = 0, last = 0, queue = 0;  // the life's
      int life = 0;
    };
    offsets.assign(lives_.size(), 0);
    std::vector<Placed> placed;  // by offset
    placed.reserve(order.size());
    std::size_t end = 0;
    for (std::size_t i : order) {
      const Life& own = lives_[i];
      const std::size_t bytes = own.bytes;
      std::size_t best = 0, best_gap = static_cast<std::size_t>(-1), top = 0;
      bool found = false;
      for (const Placed& other : placed) {
        if (other.end <= top) continue;  // changes nothing, whether or not they are alive together
        const bool is_first = own.last < other.first;
        if (is_first || other.last < own.first) {
          // A queue keeps its own order, also over the step edge; most pairs have one queue.
          if (own.queue >= 0 && own.queue == other.queue) continue;
          const Life& life = lives_[static_cast<std::size_t>(other.life)];
          if (is_first ? apart(own, life) : apart(life, own)) continue;
        }
        if (other.begin > top && other.begin - top >= bytes && other.begin - top < best_gap) {
          best = top;
          best_gap = other.begin - top;
          found = true;
          if (best_gap == bytes) break;  // no gap is smaller
        }
        top = other.end;
      }
      offsets[i] = found ? best : top;
      end = std::max(end, offsets[i] + bytes);
      const auto at = std::upper_bound(
          placed.begin(), placed.end(), offsets[i],
          [](std::size_t offset, const Placed& other) { return offset < other.begin; });
      placed.insert(at, {offsets[i], offsets[i] + bytes, own.first, own.last, own.queue,
                         static_cast<int>(i)});
    }
    return end;
  }

 private:
  // All uses of a have ended when b's first ones of this step, or of the next, start.
  bool before(const Life& a, const Life& b, int step) const {
    for (std::size_t q = 0; q < queues_; ++q) {
      if (a.ends[q] >= 0 && b.reached[step][q] <= a.ends[q]) return false;
    }
    return true;
  }

  std::size_t queues_ = 0;
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
    // A group of gradients that travel side by side may contain a loss.
    const int largest = *std::max_element(
        life->buffers.begin(), life->buffers.end(),
        [&](int a, int b) { return plan.buffers[a].bytes < plan.buffers[b].bytes; });
    const BufferKind kind = plan.buffers[largest].kind;
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
  const std::vector<std::vector<int>> groups = side_by_side(lowered, plan);
  for (std::size_t d = 0; d < lowered.devices.size(); ++d) {
    const Placer placer(items, plan, static_cast<int>(d), groups);
    const std::vector<Life>& lives = placer.lives();
    std::vector<std::size_t> order(lives.size()), offsets, best;
    std::size_t smallest = static_cast<std::size_t>(-1);
    const std::size_t least = placer.least_bytes();
    auto attempt = [&](auto less) {
      if (smallest == least) return;
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
    for (std::size_t i = 0; i < lives.size(); ++i) {
      std::size_t offset = best[i];
      for (int buffer : lives[i].buffers) {
        plan.buffers[buffer].offset = offset;
        offset += aligned(plan.buffers[buffer].bytes);
      }
    }
    plan.memory[d].arena = lives.empty() ? 0 : smallest;
    report(placer, items, lowered, plan, static_cast<int>(d), plan.memory[d]);
  }
}

}  // namespace tandem
