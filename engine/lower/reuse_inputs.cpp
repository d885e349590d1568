// Makes element-wise results overwrite an operand that is not needed any more: one buffer less.
#include <algorithm>

#include "engine/lower/placed_graph.h"
#include "engine/operators/collectives/collective.h"

namespace tandem {
namespace {

// How many of the first inputs the only result may overwrite: each element is read before its place
// is written.
std::size_t reusable_inputs(const Node& node) {
  if (node.op->name == "GatherAdd") return 1;
  if (node.outputs.size() != 1) return 0;
  const bool is_element_wise =
      node.op->role != Role::fused
          ? node.op->is_scalar()
          : std::all_of(node.body->nodes.begin(), node.body->nodes.end(),
                        [](const Node& inner) { return inner.op->is_scalar(); });
  return is_element_wise ? node.inputs.size() : 0;
}

class Reuse {
 public:
  explicit Reuse(Lowered& lowered) : lowered_(lowered), graph_(lowered.graph) {
    first_.assign(graph_.values.size(), static_cast<std::int32_t>(graph_.nodes.size()));
    last_.assign(graph_.values.size(), -1);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (lowered_.nodes[n].is_view()) continue;
      for (ValueId id : graph_.nodes[n].inputs) touch(id, n);
      for (ValueId id : graph_.nodes[n].outputs) touch(id, n);
    }
    for (const NamedValue& output : graph_.outputs) last_[storage(output.value)] = forever;
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      if (graph_.values[v].kind != ValueKind::computed) last_[v] = forever;
      sharing_.push_back({});
    }
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const ValueId id{static_cast<std::int32_t>(v)};
      sharing_[storage(id)].push_back(id);
    }
  }

  void run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (lowered_.nodes[n].collective) reduce_in_place(n);
      if (lowered_.nodes[n].kernel == nullptr) continue;
      const std::size_t count = reusable_inputs(node);
      for (std::size_t i = 0; i < count; ++i) {
        if (reuse(n, 0, i)) break;
      }
    }
  }

 private:
  static constexpr std::int32_t forever = 1 << 30;

  // Each result overwrites its own operand, where no other operand has the same storage.
  void reduce_in_place(std::size_t n) {
    const Node& node = graph_.nodes[n];
    if (collective_kind(node) != CollectiveKind::all_reduce) return;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const auto sharing =
          std::count_if(node.inputs.begin(), node.inputs.end(),
                        [&](ValueId other) { return storage(other) == storage(node.inputs[i]); });
      if (sharing == 1) reuse(n, i, i);
    }
  }

  bool reuse(std::size_t n, std::size_t output, std::size_t input) {
    const Node& node = graph_.nodes[n];
    if (!node.inputs[input] || !may_reuse(node, output, input, static_cast<std::int32_t>(n)))
      return false;
    merge(storage(node.outputs[output]), storage(node.inputs[input]));
    lowered_.nodes[n].in_place[output] = static_cast<int>(input);
    return true;
  }

  std::int32_t storage(ValueId id) const { return lowered_.values[id.index].storage.index; }

  void touch(ValueId id, std::size_t n) {
    if (!id) return;
    const std::int32_t s = storage(id), at = static_cast<std::int32_t>(n);
    first_[s] = std::min(first_[s], at);
    last_[s] = std::max(last_[s], at);
  }

  bool may_reuse(const Node& node, std::size_t output, std::size_t input, std::int32_t n) const {
    const ValueId x = node.inputs[input], y = node.outputs[output];
    const std::int32_t from = storage(x), to = storage(y);
    if (from == to || to != y.index || first_[to] != n || last_[to] == forever) return false;
    if (last_[from] != n) return false;
    const TensorType& type = graph_.type(y);
    const Layout& layout = lowered_.values[y.index].layout;
    if (graph_.type(x).shape != type.shape ||
        size_of(graph_.type(x).dtype) != size_of(type.dtype)) {
      return false;
    }
    if (!layout.is_strided() || !same_places(layout, lowered_.values[x.index].layout, type.shape))
      return false;
    // The buffer must hold exactly this value, in this layout.
    const ValueId owner{from};
    if (graph_.type(owner).elements() != type.elements()) return false;
    if (span_elements(lowered_.values[from].layout, graph_.type(owner).shape) != type.elements())
      return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId other = node.inputs[i];
      if (!other || i == input || storage(other) != from) continue;
      if (graph_.type(other).shape != type.shape ||
          !same_places(lowered_.values[other.index].layout, layout, type.shape)) {
        return false;
      }
    }
    return true;
  }

  void merge(std::int32_t old, std::int32_t into) {
    for (ValueId id : sharing_[old]) {
      lowered_.values[id.index].storage = ValueId{into};
      sharing_[into].push_back(id);
    }
    sharing_[old].clear();
    last_[into] = last_[old];
  }

  Lowered& lowered_;
  const Graph& graph_;
  std::vector<std::int32_t> first_, last_;     // per storage: first and last node that touches it
  std::vector<std::vector<ValueId>> sharing_;  // per storage: the values in it
};

}  // namespace

void reuse_inputs(Lowered& lowered) { Reuse(lowered).run(); }

}  // namespace tandem
