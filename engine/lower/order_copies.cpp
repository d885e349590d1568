// Orders copies with a `lookahead`: a copy to a device at most that many uses ahead of the use it
// is for; a copy from it at most that many uses later than it could be. The planner uses their
// bytes otherwise before and after that. Rows for the next step come after what is fed for this
// one.
#include <algorithm>
#include <map>

#include "engine/lower/placed_graph.h"

namespace tandem {
namespace {

class CopyOrder {
 public:
  explicit CopyOrder(const PlacedGraph& placed)
      : placed_(placed), graph_(placed.graph), readers_(readers_of(graph_)) {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) keys_.push_back(static_cast<double>(n));
  }

  std::vector<double> run(std::size_t devices) {
    for (std::size_t d = 1; d < devices; ++d) {
      order_arrivals(static_cast<int>(d));
      order_departures(static_cast<int>(d));
      order_rows_ahead(static_cast<int>(d));
    }
    return std::move(keys_);
  }

 private:
  struct Copy {
    std::int32_t node;
    std::int64_t lookahead;
  };
  // Copies by the node that first reads, or last uses, what they carry.
  using Groups = std::map<std::int32_t, std::vector<Copy>>;

  bool is_copy(const Node& node) const {
    return node.op->role == Role::transfer && node.attributes.integer("lookahead") >= 0;
  }
  bool computes(std::size_t n) const {
    return !is_view(graph_.nodes[n]) && graph_.nodes[n].op->role != Role::transfer;
  }

  // Nodes of `device` that compute with the value or a view of it.
  void collect(ValueId value, int device, std::vector<std::int32_t>& found) const {
    for (NodeId reader : readers_[value.index]) {
      if (computes(reader.index)) {
        if (placed_.nodes[reader.index].device == device) found.push_back(reader.index);
      } else if (is_view(graph_.node(reader))) {
        for (ValueId output : graph_.node(reader).outputs) collect(output, device, found);
      }
    }
  }

  void order_arrivals(int device) {
    Groups groups;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!is_copy(node) || placed_.nodes[n].device != device) continue;
      std::vector<std::int32_t> readers;
      collect(node.outputs[0], device, readers);
      if (readers.empty()) continue;
      groups[*std::min_element(readers.begin(), readers.end())].push_back(
          {static_cast<std::int32_t>(n), node.attributes.integer("lookahead")});
    }
    if (groups.empty()) return;
    std::vector<std::int32_t> uses;  // first readers of the groups
    for (const auto& [reader, copies] : groups) uses.push_back(reader);
    // The first copies have no earlier use to count from: they count the nodes computed before it.
    std::vector<std::int32_t> before;
    for (std::int32_t n = 0; n < uses[0]; ++n) {
      if (computes(n) && placed_.nodes[n].device == device) before.push_back(n);
    }
    uses.insert(uses.begin(), before.begin(), before.end());
    std::size_t at = before.size();
    for (const auto& [reader, copies] : groups) {
      for (const Copy& copy : copies) {
        const auto back = static_cast<std::size_t>(copy.lookahead) + 1;
        keys_[copy.node] = back > at ? -0.5 : uses[at - back] + 0.5;
      }
      ++at;
    }
  }

  void order_departures(int device) {
    Groups groups;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!is_copy(node) || placed_.nodes[n].device != host) continue;
      const NodeId producer = graph_.value(node.inputs[0]).producer;
      if (!producer || placed_.nodes[producer.index].device != device) continue;
      const std::vector<NodeId>& readers = readers_[node.outputs[0].index];
      const bool only_waits = std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
        return graph_.node(reader).op->role == Role::transfer;
      });
      if (!only_waits) continue;  // the host computes with it
      std::vector<std::int32_t> uses{producer.index};
      collect(node.inputs[0], device, uses);
      groups[*std::max_element(uses.begin(), uses.end())].push_back(
          {static_cast<std::int32_t>(n), node.attributes.integer("lookahead")});
    }
    std::vector<std::int32_t> uses;
    for (const auto& [use, copies] : groups) uses.push_back(use);
    std::size_t at = 0;
    for (const auto& [use, copies] : groups) {
      for (const Copy& copy : copies) {
        const auto later = std::min(at + static_cast<std::size_t>(copy.lookahead), uses.size() - 1);
        keys_[copy.node] = uses[later] + 0.5;
      }
      ++at;
    }
  }

  // What is fed for this step crosses before rows that are for the next one.
  void order_rows_ahead(int device) {
    auto first = static_cast<std::int32_t>(graph_.nodes.size());
    for (const State& state : graph_.states) {
      if (!state.derived.is<PrefetchedRows>()) continue;
      const NodeId copy = graph_.value(state.final).producer;
      if (placed_.nodes[copy.index].device == device) first = std::min(first, copy.index);
    }
    for (std::size_t n = first; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (node.op->role != Role::transfer || placed_.nodes[n].device != device) continue;
      if (graph_.value(node.inputs[0]).kind == ValueKind::input) keys_[n] = first - 0.5;
    }
  }

  const PlacedGraph& placed_;
  const Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<double> keys_;
};

}  // namespace

PlacedGraph order_copies(PlacedGraph placed, const LowerContext& context) {
  if (context.devices.size() < 2) return placed;
  const std::vector<double> keys = CopyOrder(placed).run(context.devices.size());
  return tidy(std::move(placed), keys);
}

}  // namespace tandem
