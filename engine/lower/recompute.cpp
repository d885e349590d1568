// Results of operators with `acts = recompute` are made again for backward, by clones of their
// nodes with the same random key, right before they are read.
//
// The selected nodes of a device are divided, in their order, into segments. What crosses from one
// segment into a later one is kept, like what comes from nodes that are not selected; the rest is
// made again from that. The cuts are those for which the kept bytes and the largest segment's saved
// bytes together are smallest. A segment that would save nothing is left as it is.
#include <algorithm>
#include <deque>
#include <set>

#include "engine/lower/saved_values.h"

namespace tandem {
namespace {

bool is_batch_normalization(const Node& node) {
  return node.op->name == "BatchNormalizationTraining";
}

/// Statistics and the like: kept, because kernels that make them rely on their first result being
/// read, and a few bytes are not worth a clone.
bool is_side_result(const Graph& graph, ValueId value) {
  const std::string& op = graph.node(graph.value(value).producer).op->name;
  return graph.value(value).output_index > 0 && op != "Dropout" && op != "Split";
}

/// A selected node among those of its device.
struct Candidate {
  std::int32_t node;
  std::size_t saved = 0;     // bytes of its results that backward reads
  std::size_t crossing = 0;  // bytes that selected nodes up to here make for later ones
};

/// Last candidates of the segments, ascending: the cuts for which the bytes that cross them and the
/// saved bytes of the largest segment together are smallest.
std::vector<std::size_t> segment_ends(const std::vector<Candidate>& candidates) {
  const std::size_t count = candidates.size();
  std::vector<std::size_t> sum(count + 1, 0);  // saved bytes of the first i candidates
  std::size_t largest = 1;
  for (std::size_t i = 0; i < count; ++i) {
    sum[i + 1] = sum[i] + candidates[i].saved;
    largest = std::max(largest, candidates[i].saved);
  }
  std::size_t best = static_cast<std::size_t>(-1);
  std::vector<std::size_t> ends;
  for (double limit = static_cast<double>(largest);; limit *= 1.1) {
    const auto most = static_cast<std::size_t>(limit);
    // kept[i]: least bytes across cuts where one of them comes after the first i candidates.
    std::vector<std::size_t> kept(count + 1, 0), from(count + 1, 0);
    std::deque<std::size_t> window;  // possible starts of the segment that ends at i, best first
    for (std::size_t i = 1; i <= count; ++i) {
      while (!window.empty() && kept[window.back()] >= kept[i - 1]) window.pop_back();
      window.push_back(i - 1);
      while (sum[i] - sum[window.front()] > most) window.pop_front();
      from[i] = window.front();
      kept[i] = kept[from[i]] + (i < count ? candidates[i - 1].crossing : 0);
    }
    std::size_t widest = 0;
    std::vector<std::size_t> now;
    for (std::size_t i = count; i > 0; i = from[i]) {
      now.push_back(i - 1);
      widest = std::max(widest, sum[i] - sum[from[i]]);
    }
    if (kept[count] + widest < best) {
      best = kept[count] + widest;
      ends.assign(now.rbegin(), now.rend());
    }
    if (most >= sum[count]) return ends;
  }
}

class Recomputation {
 public:
  explicit Recomputation(PlacedEdit& edit)
      : edit_(edit), graph_(edit.graph()), count_(graph_.nodes.size()), root_(view_roots(edit)) {
    segment_.assign(count_, -1);
    clone_.resize(count_);
    kept_.assign(graph_.values.size(), 0);
    for (std::size_t n = 0; n < count_; ++n) {
      if (edit.place(node_id(n)).acts == Activations::recompute && may_clone(graph_.nodes[n])) {
        segment_[n] = 0;
        any_ = true;
      }
    }
  }

  bool any() const { return any_; }

  void run() {
    for (std::size_t d = 0; d < edit_.context().devices.size(); ++d) divide(static_cast<int>(d));
    for (std::size_t n = 0; n < count_; ++n) {
      if (graph_.nodes[n].phase != Phase::backward) continue;
      const std::size_t inputs = graph_.nodes[n].inputs.size();
      for (std::size_t i = 0; i < inputs; ++i) {
        const ValueId input = graph_.nodes[n].inputs[i];
        if (!is_remade(input, edit_.device(node_id(n)))) continue;
        const ValueId again = remade(input, n);
        graph_.nodes[n].inputs[i] = again;
      }
    }
  }

 private:
  NodeId producer(ValueId value) const { return graph_.value(value).producer; }

  ValueId root(ValueId value) const { return root_[value.index]; }
  std::size_t bytes(ValueId value) const { return graph_.type(value).bytes(); }

  // A clone must not write a state, nor read one that a forward node has written meanwhile.
  bool may_clone(const Node& node) const {
    if (node.phase != Phase::forward) return false;
    const bool statistics = is_batch_normalization(node);
    if (!node.op->aliases.empty() && !statistics) return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i] || (statistics && i >= 3)) continue;
      if (graph_.value(node.inputs[i]).kind != ValueKind::state) continue;
      for (const State& state : graph_.states) {
        if (!(state.initial == node.inputs[i]) || state.final == state.initial) continue;
        if (graph_.node(producer(state.final)).phase == Phase::forward) return false;
      }
    }
    return true;
  }

  // Whether a selected node of that device makes the value.
  bool is_selected(ValueId value, int device) const {
    if (!value || graph_.value(value).kind != ValueKind::computed) return false;
    const NodeId by = producer(value);
    if (by.index >= static_cast<std::int32_t>(count_) || segment_[by.index] < 0) return false;
    if (is_side_result(graph_, value)) return false;
    return edit_.device(by) == device;
  }
  bool is_remade(ValueId value, int device) const {
    return is_selected(value, device) && !kept_[root(value).index] && !kept_[value.index];
  }
  bool read_by_backward(ValueId value, int device) const { return is_saved(edit_, value, device); }
  void keep(ValueId value) { kept_[value.index] = kept_[root(value).index] = 1; }

  // Divides the selected nodes of a device into segments.
  void divide(int device) {
    std::vector<Candidate> candidates;
    for (std::size_t n = 0; n < count_; ++n) {
      if (segment_[n] < 0 || edit_.device(node_id(n)) != device) continue;
      segment_[n] = static_cast<int>(candidates.size());  // until the segments are known
      candidates.push_back({static_cast<std::int32_t>(n)});
    }
    if (candidates.empty()) return;
    std::vector<std::int64_t> ends(candidates.size() + 1, 0);  // changes of the bytes that cross
    std::vector<std::int32_t> last_reader(graph_.values.size(), -1);
    std::vector<char> saved(graph_.values.size(), 0);
    for (const Candidate& candidate : candidates) {
      for (ValueId output : graph_.nodes[candidate.node].outputs) {
        if (!is_selected(output, device)) continue;
        if (device == 0 && edit_.is_kept(output)) keep(output);  // an output of the graph
        const std::int32_t base = root(output).index;
        saved[base] |= read_by_backward(output, device);
        for (NodeId reader : edit_.readers(output)) {
          if (segment_[reader.index] >= 0 && edit_.device(reader) == device)
            last_reader[base] = std::max(last_reader[base], segment_[reader.index]);
        }
      }
    }
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const ValueId value{static_cast<std::int32_t>(v)};
      if (root(value) != value || !is_selected(value, device) || kept_[v]) continue;
      const int at = segment_[producer(value).index];
      if (saved[v]) candidates[at].saved += bytes(value);
      if (last_reader[v] <= at) continue;
      ends[at] += static_cast<std::int64_t>(bytes(value));
      ends[last_reader[v]] -= static_cast<std::int64_t>(bytes(value));
    }
    std::int64_t crossing = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      crossing += ends[i];
      candidates[i].crossing = static_cast<std::size_t>(crossing);
    }
    int segment = 0;
    std::size_t next = 0;
    for (std::size_t end : segment_ends(candidates)) {
      for (; next <= end; ++next) segment_[candidates[next].node] = segment;
      ++segment;
    }
    for (const Candidate& candidate : candidates) {
      for (ValueId input : graph_.nodes[candidate.node].inputs) {
        if (is_selected(input, device) &&
            segment_[producer(input).index] != segment_[candidate.node]) {
          keep(input);
        }
      }
    }
    keep_compared(device);
    drop_useless(candidates, segment, device);
  }

  // Keeps inputs that a gradient compares with a kept result: an input that is made again, in 16
  // bits or by another fused kernel, may differ in the last bit from the one the result came from.
  void keep_compared(int device) {
    for (std::size_t n = 0; n < count_; ++n) {
      const Node& node = graph_.nodes[n];
      if (!gradient_compares(node) || edit_.device(node_id(n)) != device) continue;
      const ValueId y = node.outputs[0];
      if (!read_by_backward(y, device) || is_remade(y, device)) continue;
      for (const ValueId x : node.inputs) {
        if (x && is_remade(x, device)) keep(x);
      }
    }
  }

  // Drops segments whose clones would keep at least as many bytes alive as they save.
  void drop_useless(const std::vector<Candidate>& candidates, int segments, int device) {
    std::vector<std::vector<std::int32_t>> members(segments);
    for (const Candidate& candidate : candidates)
      members[segment_[candidate.node]].push_back(candidate.node);
    for (const std::vector<std::int32_t>& nodes : members) {
      std::set<std::int32_t> saved, borders;
      std::vector<ValueId> wanted;
      for (std::int32_t n : nodes) {
        for (ValueId output : graph_.nodes[n].outputs) {
          if (!is_remade(output, device) || !read_by_backward(output, device)) continue;
          wanted.push_back(output);
          if (is_remade(root(output), device)) saved.insert(root(output).index);
        }
      }
      for (std::int32_t n : needed_for(wanted, device)) {
        for (ValueId input : graph_.nodes[n].inputs) {
          if (!input || is_remade(input, device)) continue;
          const ValueId base = root(input);
          if (graph_.value(base).kind == ValueKind::computed && !read_by_backward(base, device) &&
              !read_by_backward(input, device)) {
            borders.insert(base.index);
          }
        }
      }
      std::size_t gain = 0, loss = 0;
      for (std::int32_t v : saved) gain += bytes(ValueId{v});
      for (std::int32_t v : borders) loss += bytes(ValueId{v});
      if (gain > loss) continue;
      for (std::int32_t n : nodes) segment_[n] = -1;
    }
  }

  // The nodes that make these values from what is kept, ascending.
  std::vector<std::int32_t> needed_for(std::vector<ValueId> wanted, int device) const {
    std::set<std::int32_t> needed;
    while (!wanted.empty()) {
      const NodeId by = producer(wanted.back());
      wanted.pop_back();
      if (!needed.insert(by.index).second) continue;
      for (ValueId input : graph_.node(by).inputs) {
        if (is_remade(input, device)) wanted.push_back(input);
      }
    }
    return {needed.begin(), needed.end()};
  }

  // The value as a clone makes it; `reader` is the first node that needs it.
  ValueId remade(ValueId value, std::size_t reader) {
    const int device = edit_.device(producer(value));
    for (std::int32_t n : needed_for({value}, device)) {
      if (!clone_[n]) clone(n, reader, device);
    }
    return graph_.node(clone_[producer(value).index]).outputs[graph_.value(value).output_index];
  }

  void clone(std::int32_t n, std::size_t reader, int device) {
    const Node node = graph_.nodes[n];
    std::vector<ValueId> inputs = node.inputs;
    for (ValueId& input : inputs) {
      if (!is_remade(input, device)) continue;
      input = graph_.node(clone_[producer(input).index]).outputs[graph_.value(input).output_index];
    }
    if (is_batch_normalization(node)) {
      // Running statistics are only written once: nothing reads those that the clone makes, and its
      // inputs for them may be anything of the same shape.
      inputs[3] = node.outputs[3];
      inputs[4] = node.outputs[4];
    }
    const NodeId id =
        edit_.add(node.op->name, std::move(inputs), node.attributes, NodeId{n}, {}, node.body);
    graph_.node(id).phase = Phase::backward;
    edit_.set_key(id, static_cast<double>(reader) - 1 +
                          (static_cast<double>(n) + 1) / (static_cast<double>(count_) + 1));
    clone_[n] = id;
  }

  PlacedEdit& edit_;
  Graph& graph_;
  std::size_t count_;
  bool any_ = false;
  std::vector<ValueId> root_;  // per value: itself, or what it is a view of
  std::vector<char> kept_;     // per value: not made again, though selected
  std::vector<int> segment_;   // per node; -1: not selected
  std::vector<NodeId> clone_;  // per node
};

}  // namespace

PlacedGraph recompute(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  Recomputation recomputation(edit);
  if (recomputation.any()) recomputation.run();
  return edit.finish();
}

}  // namespace tandem
