// Proves a plan free of races. Shares no code with the planner: it runs the instruction lists of
// three consecutive steps with vector clocks and checks the accesses that they declare.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "engine/operators/operator.h"
#include "engine/plan/plan.h"

namespace tandem {
namespace {

using Clock = std::vector<int>;  // per queue: instructions known to have finished, over all steps

constexpr int verified_steps =
    3;  // a buffer has at most two copies: its third step is the first again

struct Happening {
  int queue = 0;
  int index = 0;  // in the queue's list
};

class Verifier {
 public:
  Verifier(const Plan& plan, const Lowered& lowered) : plan_(plan), lowered_(lowered) {}

  std::vector<std::string> run() {
    if (!run_clocks()) return std::move(wrong_);
    find_nodes();
    check_accesses();
    check_collectives();
    check_copies();
    check_conflicts();
    check_arena();
    check_versions();
    return std::move(wrong_);
  }

 private:
  const Graph& graph() const { return lowered_.graph; }
  int length(int queue) const { return static_cast<int>(plan_.queues[queue].instructions.size()); }
  const Instruction& at(Happening h) const { return plan_.queues[h.queue].instructions[h.index]; }

  std::string name(Happening h) const {
    const Instruction& instruction = at(h);
    const std::string& queue = plan_.queues[h.queue].name;
    if (instruction.node) {
      const Node& node = graph().node(instruction.node);
      const std::string part = instruction.parts == 1
                                   ? ""
                                   : " part " + std::to_string(instruction.part + 1) + " of " +
                                         std::to_string(instruction.parts);
      return node.op->name + " '" + node.path + "'" + part + " on " + queue;
    }
    const std::string buffer =
        instruction.buffer >= 0 ? plan_.buffers[instruction.buffer].name : "?";
    return (instruction.kind == Instruction::Kind::feed ? "feed of '" : "read of '") + buffer +
           "' on " + queue;
  }

  // Whether a of step sa has finished when b of step sb starts.
  bool before(Happening a, int sa, Happening b, int sb) const {
    return clocks_[sb][b.queue][b.index][a.queue] > a.index + sa * length(a.queue);
  }

  bool run_clocks() {
    const int queues = static_cast<int>(plan_.queues.size());
    std::vector<std::vector<Clock>> events(verified_steps, std::vector<Clock>(plan_.events));
    std::vector<Clock> now(queues, Clock(queues, 0));
    std::vector<int> next(queues, 0);
    clocks_.assign(verified_steps, std::vector<std::vector<Clock>>(queues));
    bool moved = true, all = false;
    while (moved && !all) {
      moved = false;
      all = true;
      for (int q = 0; q < queues; ++q) {
        while (next[q] < verified_steps * length(q)) {
          const int step = next[q] / length(q);
          const Instruction& instruction = plan_.queues[q].instructions[next[q] % length(q)];
          if (instruction.kind == Instruction::Kind::wait) {
            const int of = step - instruction.steps_back;
            if (of >= 0) {
              const Clock& event = events[of][instruction.event];
              if (event.empty()) break;
              for (int k = 0; k < queues; ++k) now[q][k] = std::max(now[q][k], event[k]);
            }
          }
          clocks_[step][q].push_back(now[q]);  // what has finished before it starts
          now[q][q] = ++next[q];
          if (instruction.kind == Instruction::Kind::record)
            events[step][instruction.event] = now[q];
          moved = true;
        }
        all = all && next[q] == verified_steps * length(q);
      }
    }
    if (!all) wrong_.push_back("the queues wait for each other for ever");
    return all;
  }

  void find_nodes() {
    places_.assign(graph().nodes.size(), {});
    for (int q = 0; q < static_cast<int>(plan_.queues.size()); ++q) {
      for (int i = 0; i < length(q); ++i) {
        const Instruction& instruction = plan_.queues[q].instructions[i];
        if (!instruction.node) continue;
        std::vector<Happening>& places = places_[instruction.node.index];
        for (Happening other : places) {
          if (at(other).part == instruction.part) wrong_.push_back("runs twice: " + name({q, i}));
        }
        places.push_back({q, i});
      }
    }
    for (std::size_t n = 0; n < places_.size(); ++n) {
      if (lowered_.nodes[n].is_view()) continue;
      if (places_[n].empty()) {
        wrong_.push_back("never runs: '" + graph().nodes[n].path + "'");
      } else if (!is_complete(static_cast<int>(n))) {
        wrong_.push_back("its parts are not the whole: " + name(places_[n][0]));
      }
    }
  }

  // Elements [begin, end) that an instruction computes of its node.
  std::pair<std::int64_t, std::int64_t> part_of(const Instruction& instruction) const {
    const NodeId node = instruction.node;
    const std::int64_t total = graph().type(graph().node(node).outputs[0]).elements();
    if (instruction.parts == 1) return {0, total};
    const std::int64_t length = plan_.range_of[node.index], begin = instruction.part * length;
    return {begin, std::min(begin + length, total)};
  }

  // Whether all parts are there, none is empty, they cover all elements, and the node may be cut.
  bool is_complete(int n) const {
    const std::int64_t total = graph().type(graph().nodes[n].outputs[0]).elements();
    const int parts = at(places_[n][0]).parts;
    if (parts == 1) return places_[n].size() == 1;
    if (static_cast<int>(places_[n].size()) != parts) return false;
    for (Happening h : places_[n]) {
      const auto [begin, end] = part_of(at(h));
      const bool last = at(h).part == parts - 1;
      if (at(h).parts != parts || at(h).part >= parts || begin >= end || (end == total) != last)
        return false;
    }
    return may_be_cut(n);
  }

  bool may_be_cut(int n) const {
    const Node& node = graph().nodes[n];
    if (!lowered_.nodes[n].transfer && !node.op->elementwise_ranges) return false;
    const ValueId first = node.outputs[0];
    const TensorType& whole = graph().type(first);
    Layout places = lowered_.values[first.index].layout;
    places.offset = 0;
    for (const auto& operands : {&node.inputs, &node.outputs}) {
      for (ValueId id : *operands) {
        if (!id || graph().type(id).elements() <= 1) continue;
        Layout own = lowered_.values[id.index].layout;
        own.offset = 0;
        const Access access = access_of(id, false);
        if (graph().type(id).shape != whole.shape || !own.is_strided() ||
            !same_places(own, places, whole.shape) ||
            access.end - access.begin != graph().type(id).bytes()) {
          return false;
        }
      }
    }
    return true;
  }

  // The bytes of a value, from its layout.
  Access access_of(ValueId id, bool write) const {
    const TensorType& type = graph().type(id);
    const Layout& layout = lowered_.values[id.index].layout;
    Access access{plan_.buffer_of[id.index], 0, 0, write};
    if (!layout.is_strided()) {
      access.end = layout.opaque_bytes;
      return access;
    }
    if (type.elements() == 0) return access;
    std::int64_t first = layout.offset, last = layout.offset;
    for (std::size_t i = 0; i < type.shape.size(); ++i) {
      const std::int64_t reach = layout.strides[i] * (type.shape[i] - 1);
      first += std::min<std::int64_t>(reach, 0);
      last += std::max<std::int64_t>(reach, 0);
    }
    access.begin = first * size_of(type.dtype);
    access.end = (last + 1) * size_of(type.dtype);
    return access;
  }

  // The bytes of a value that an instruction touches, which may compute only a part.
  Access access_of(ValueId id, bool write, const Instruction& instruction) const {
    Access access = access_of(id, write);
    const TensorType& type = graph().type(id);
    const ValueId first = graph().node(instruction.node).outputs[0];
    if (instruction.parts == 1 || type.elements() != graph().type(first).elements()) return access;
    const auto [begin, end] = part_of(instruction);
    access.end = access.begin + static_cast<std::size_t>(end) * size_of(type.dtype);
    access.begin += static_cast<std::size_t>(begin) * size_of(type.dtype);
    return access;
  }

  bool declares(const Instruction& instruction, const Access& wanted) const {
    if (wanted.buffer < 0 || wanted.begin == wanted.end) return true;
    return std::any_of(instruction.accesses.begin(), instruction.accesses.end(),
                       [&](const Access& a) {
                         return a.buffer == wanted.buffer && a.begin <= wanted.begin &&
                                a.end >= wanted.end && a.write == wanted.write;
                       });
  }

  void check_accesses() {
    std::vector<char> needed(graph().values.size(), 0);
    for (const Node& node : graph().nodes) {
      for (ValueId id : node.inputs) {
        if (id) needed[id.index] = 1;
      }
    }
    for (const NamedValue& output : graph().outputs) needed[output.value.index] = 1;
    for (const State& state : graph().states) needed[state.final.index] = 1;
    for (std::size_t n = 0; n < places_.size(); ++n) {
      for (Happening place : places_[n]) {
        const Instruction& instruction = at(place);
        bool complete = true;
        for (ValueId id : graph().nodes[n].inputs)
          complete &= !id || declares(instruction, access_of(id, false, instruction));
        for (ValueId id : graph().nodes[n].outputs) {
          if (!id || !needed[id.index]) continue;
          complete &= plan_.buffer_of[id.index] >= 0 &&
                      declares(instruction, access_of(id, true, instruction));
        }
        const int workspace = plan_.workspace_of[n];
        if (workspace >= 0)
          complete &= declares(instruction, {workspace, 0, plan_.buffers[workspace].bytes, true});
        if (!complete) wrong_.push_back("touches bytes that it does not declare: " + name(place));
        for (const Access& a : instruction.accesses) {
          if (a.end > plan_.buffers[a.buffer].bytes)
            wrong_.push_back("outside its buffer: " + name(place));
        }
      }
    }
  }

  // Collectives must run in the order of the graph, which all ranks have, on blocks of elements.
  void check_collectives() {
    for (int q = 0; q < static_cast<int>(plan_.queues.size()); ++q) {
      int last = -1;
      for (int i = 0; i < length(q); ++i) {
        const Instruction& instruction = at({q, i});
        if (instruction.kind != Instruction::Kind::collective) continue;
        if (plan_.queues[q].role != Queue::Role::collective)
          wrong_.push_back("not on the queue of what ranks do together: " + name({q, i}));
        if (instruction.node.index < last)
          wrong_.push_back("ranks may come to it in another order: " + name({q, i}));
        last = instruction.node.index;
        check_blocks({q, i});
      }
    }
  }

  void check_blocks(Happening place) {
    const Node& node = graph().node(at(place).node);
    for (const auto& operands : {&node.inputs, &node.outputs}) {
      for (ValueId id : *operands) {
        const Access access = access_of(id, false);
        if (!is_row_major(lowered_.values[id.index].layout, graph().type(id).shape) ||
            access.end - access.begin != graph().type(id).bytes() || access.buffer < 0)
          wrong_.push_back("an operand is no block of its elements: " + name(place));
      }
    }
  }

  // A step that reads one of a buffer's copies must have filled it: it keeps nothing over steps.
  void check_copies() {
    for (std::size_t v = 0; v < graph().values.size(); ++v) {
      const int buffer = plan_.buffer_of[v];
      if (buffer < 0 || plan_.buffers[buffer].copies == 1) continue;
      if (plan_.buffers[buffer].copies != 2 || !plan_.buffers[buffer].in_arena() ||
          graph().values[v].kind != ValueKind::computed) {
        wrong_.push_back("cannot have copies: '" + plan_.buffers[buffer].name + "'");
      }
    }
  }

  struct Use {
    Happening by;
    Access access;
  };

  void collect_uses() {
    uses_.assign(plan_.buffers.size(), {});
    for (int q = 0; q < static_cast<int>(plan_.queues.size()); ++q) {
      for (int i = 0; i < length(q); ++i) {
        for (const Access& access : plan_.queues[q].instructions[i].accesses) {
          uses_[access.buffer].push_back({{q, i}, access});
        }
      }
    }
  }

  void check_conflicts() {
    collect_uses();
    for (std::size_t b = 0; b < uses_.size(); ++b) {
      const std::vector<Use>& list = uses_[b];
      if (std::none_of(list.begin(), list.end(), [](const Use& u) { return u.access.write; }))
        continue;
      for (const Use& x : list) {
        for (const Use& y : list) {
          if (!x.access.write && !y.access.write) continue;
          if (x.access.begin >= y.access.end || y.access.begin >= x.access.end) continue;
          if (x.by.queue == y.by.queue) continue;  // one after the other, within and across steps
          if (!before(x.by, 0, y.by, 0) && !before(y.by, 0, x.by, 0)) unordered(b, x.by, y.by, "");
          const int next = plan_.buffers[b].turns;  // the step that uses the same bytes
          if (!before(x.by, 0, y.by, next))
            unordered(b, x.by, y.by,
                      next == 1 ? " of the next step" : " of the step after the next");
        }
      }
    }
  }

  void unordered(std::size_t buffer, Happening a, Happening b, const std::string& when) {
    wrong_.push_back("not ordered on '" + plan_.buffers[buffer].name + "': " + name(a) + " and " +
                     name(b) + when);
  }

  /// The first and the last use of a buffer, per queue; -1 where there is none.
  struct Reach {
    std::vector<int> first, last;
  };

  Reach reach_of(const std::vector<Use>& uses) const {
    Reach reach{std::vector<int>(plan_.queues.size(), -1), {}};
    reach.last = reach.first;
    for (const Use& use : uses) {
      int &f = reach.first[use.by.queue], &l = reach.last[use.by.queue];
      if (f < 0 || use.by.index < f) f = use.by.index;
      l = std::max(l, use.by.index);
    }
    return reach;
  }

  // Whether all uses of a finish before any use of b, in the same step or (next) b's next step.
  bool all_before(const Reach& a, const Reach& b, int next) const {
    // Within a queue the last use of a and the first use of b decide.
    for (std::size_t p = 0; p < a.last.size(); ++p) {
      for (std::size_t q = 0; a.last[p] >= 0 && q < b.first.size(); ++q) {
        if (b.first[q] < 0) continue;
        if (!before({static_cast<int>(p), a.last[p]}, 0, {static_cast<int>(q), b.first[q]}, next))
          return false;
      }
    }
    return true;
  }

  static std::size_t extent(const Buffer& buffer) {
    return (buffer.copies - 1) * buffer.stride + buffer.bytes;
  }

  void check_arena() {
    std::vector<int> order;
    std::vector<Reach> reach(plan_.buffers.size());
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& buffer = plan_.buffers[b];
      if (!buffer.in_arena() || buffer.bytes == 0 || uses_[b].empty()) continue;
      if (buffer.copies > 1 && buffer.stride < buffer.bytes)
        wrong_.push_back("copies overlap: '" + buffer.name + "'");
      if (buffer.offset + extent(buffer) > plan_.memory[buffer.device].arena) {
        wrong_.push_back("outside the arena: '" + buffer.name + "'");
      }
      order.push_back(static_cast<int>(b));
      reach[b] = reach_of(uses_[b]);
    }
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return plan_.buffers[a].offset < plan_.buffers[b].offset; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Buffer& a = plan_.buffers[order[i]];
      for (std::size_t j = i + 1; j < order.size(); ++j) {
        const Buffer& b = plan_.buffers[order[j]];
        if (b.offset >= a.offset + extent(a)) break;
        if (a.device != b.device) continue;
        const Reach &x = reach[order[i]], &y = reach[order[j]];
        // A buffer that is filled ahead (two copies) must not share its bytes.
        const bool apart = a.copies == 1 && b.copies == 1 &&
                           ((all_before(x, y, 0) && all_before(y, x, 1)) ||
                            (all_before(y, x, 0) && all_before(x, y, 1)));
        if (!apart)
          wrong_.push_back("live at the same time in the same place: '" + a.name + "' and '" +
                           b.name + "'");
      }
    }
  }

  // The value whose bytes `id` shows: itself, or what it is a view of.
  ValueId version(ValueId id) const {
    while (graph().value(id).producer) {
      const NodeId producer = graph().value(id).producer;
      if (!lowered_.nodes[producer.index].is_view()) return id;
      const Node& node = graph().node(producer);
      if (node.inputs.size() != 1) return id;  // a Concat that is written in pieces
      id = node.inputs[0];
    }
    return id;
  }

  // Kernels that must have finished before `id` can be read.
  void makers(ValueId id, std::set<int>& found) const {
    const NodeId producer = graph().value(id).producer;
    if (!producer) return;
    if (!lowered_.nodes[producer.index].is_view()) {
      found.insert(producer.index);
      return;
    }
    for (ValueId input : graph().node(producer).inputs) makers(input, found);
  }

  // Whether it accesses bytes of the buffer; not where the value has no elements.
  bool touches(Happening h, int buffer) const {
    return std::any_of(at(h).accesses.begin(), at(h).accesses.end(), [&](const Access& access) {
      return access.buffer == buffer && access.begin < access.end;
    });
  }

  // Whether `then` comes after `first` in the same step, where that matters: parts need an order
  // only if they touch the same bytes of the buffer, and what touches none of its bytes needs none
  // (check_accesses: all touched bytes are declared).
  bool ordered(Happening first, Happening then, int buffer) const {
    if (before(first, 0, then, 0)) return true;
    if (!touches(first, buffer) || !touches(then, buffer)) return true;
    if (at(first).parts == 1 && at(then).parts == 1) return false;
    for (const Access& a : at(first).accesses) {
      for (const Access& b : at(then).accesses) {
        if (a.buffer == buffer && b.buffer == buffer && a.begin < b.end && b.begin < a.end)
          return false;
      }
    }
    return true;
  }

  // Every reader comes after what it reads was made and before it is overwritten.
  void check_versions() {
    std::vector<std::vector<int>> readers(graph().values.size());
    for (std::size_t n = 0; n < places_.size(); ++n) {
      if (places_[n].empty()) continue;
      for (ValueId input : graph().nodes[n].inputs) {
        if (!input) continue;
        readers[version(input).index].push_back(static_cast<int>(n));
        std::set<int> made_by;
        makers(input, made_by);
        for (int maker : made_by) check_made(maker, input, static_cast<int>(n));
      }
    }
    for (std::size_t n = 0; n < places_.size(); ++n) {
      if (places_[n].empty()) continue;
      for (int input : lowered_.nodes[n].in_place) {
        if (input < 0) continue;
        const ValueId old = version(graph().nodes[n].inputs[input]);
        for (int reader : readers[old.index]) {
          if (reader != static_cast<int>(n)) check_kept(reader, old, static_cast<int>(n));
        }
      }
    }
  }

  void check_made(int maker, ValueId value, int reader) {
    const int buffer = plan_.buffer_of[value.index];
    for (Happening made : places_[maker]) {
      for (Happening read : places_[reader]) {
        if (ordered(made, read, buffer)) continue;
        wrong_.push_back("reads '" + graph().value(value).name +
                         "' before it is made: " + name(read));
      }
    }
  }

  void check_kept(int reader, ValueId old, int writer) {
    const int buffer = plan_.buffer_of[old.index];
    for (Happening read : places_[reader]) {
      for (Happening write : places_[writer]) {
        if (ordered(read, write, buffer)) continue;
        wrong_.push_back("reads '" + graph().value(old).name + "' after " + name(write) +
                         " overwrote it: " + name(read));
      }
    }
  }

  const Plan& plan_;
  const Lowered& lowered_;
  std::vector<std::string> wrong_;
  std::vector<std::vector<std::vector<Clock>>> clocks_;  // [step][queue][index]
  std::vector<std::vector<Happening>> places_;           // per node: its parts
  std::vector<std::vector<Use>> uses_;                   // per buffer
};

}  // namespace

std::vector<std::string> verify(const Plan& plan, const Lowered& lowered) {
  return Verifier(plan, lowered).run();
}

}  // namespace tandem
