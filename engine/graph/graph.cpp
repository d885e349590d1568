// Lookups in a graph.
#include "engine/graph/graph.h"

namespace tandem {

DEFINE_COPIES(Node);
DEFINE_COPIES(State);
DEFINE_COPIES(Graph);

namespace {

template <class T>
const T* find_named(const std::vector<T>& list, std::string_view name) {
  for (const T& item : list) {
    if (item.name == name) return &item;
  }
  return nullptr;
}

}  // namespace

const NamedValue* Graph::find_input(std::string_view name) const {
  return find_named(inputs, name);
}

const NamedValue* Graph::find_output(std::string_view name) const {
  return find_named(outputs, name);
}

const State* Graph::find_state(std::string_view name) const { return find_named(states, name); }

ValueId Graph::find_value(std::string_view name) const {
  const Value* value = find_named(values, name);
  return value == nullptr ? ValueId{} : ValueId{static_cast<std::int32_t>(value - values.data())};
}

std::vector<std::vector<NodeId>> readers_of(const Graph& graph) {
  std::vector<std::vector<NodeId>> readers(graph.values.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const NodeId id{static_cast<std::int32_t>(n)};
    for (ValueId input : graph.nodes[n].inputs) {
      if (!input) continue;
      std::vector<NodeId>& list = readers[input.index];
      if (list.empty() || !(list.back() == id)) list.push_back(id);
    }
  }
  return readers;
}

}  // namespace tandem
