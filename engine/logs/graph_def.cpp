#include "engine/logs/graph_def.h"

#include <set>

#include "engine/formats/events/wire.h"
#include "engine/operators/operator.h"

namespace tandem {
namespace {

// Numbers of fields in graph.proto, node_def.proto, attr_value.proto and tensor_shape.proto.
namespace graph_field {
constexpr int node = 1, versions = 4;                 // GraphDef
constexpr int producer = 1;                           // VersionDef
constexpr int name = 1, op = 2, input = 3, attr = 5;  // NodeDef
constexpr int key = 1, value = 2;                     // an entry of NodeDef.attr
constexpr int list = 1, shape = 7;                    // AttrValue, AttrValue.ListValue
constexpr int dim = 2, size = 1;                      // TensorShapeProto, its Dim
}  // namespace graph_field

/// "blocks.0.fc1:weight" as "blocks/0/fc1/weight": scopes end at slashes, and a colon or a caret
/// would mean an output or an order. Characters outside ASCII have no meaning there and become "_".
std::string scoped_name(const std::string& path) {
  std::string name;
  for (const char c : path) {
    const bool is_end = c == '.' || c == ':' || c == '/';
    if (is_end && (name.empty() || name.back() == '/')) continue;
    const bool is_odd = c <= ' ' || c == '^' || static_cast<unsigned char>(c) > 126;
    name += is_end ? '/' : is_odd ? '_' : c;
  }
  while (!name.empty() && name.back() == '/') name.pop_back();
  return name.empty() ? "unnamed" : name;
}

class GraphDefWriter {
 public:
  explicit GraphDefWriter(const Graph& graph)
      : graph_(graph), names_(graph.values.size()), states_(graph.values.size()) {}

  std::string write() {
    for (const State& state : graph_.states)
      states_[static_cast<std::size_t>(state.initial.index)] = &state;
    for (const Node& node : graph_.nodes) add(node);
    WireMessage versions;
    versions.integer(graph_field::producer, 1);
    return all_.message(graph_field::versions, versions).text();
  }

 private:
  std::string unique_name(const std::string& path) {
    const std::string name = scoped_name(path);
    std::string free = name;
    for (int number = 1; !taken_.insert(free).second; ++number)
      free = name + "_" + std::to_string(number);
    return free;
  }

  void add(const std::string& name, std::string_view op, const std::vector<std::string>& inputs,
           const std::vector<ValueId>& outputs) {
    WireMessage node, shapes, list, entry;
    node.bytes(graph_field::name, name).bytes(graph_field::op, op);
    for (const std::string& input : inputs) node.bytes(graph_field::input, input);
    for (const ValueId output : outputs) {
      WireMessage shape;
      if (output) {
        for (const std::int64_t extent : graph_.type(output).shape) {
          WireMessage dimension;
          dimension.integer(graph_field::size, extent);
          shape.message(graph_field::dim, dimension);
        }
      }
      shapes.message(graph_field::shape, shape);
    }
    list.message(graph_field::list, shapes);
    entry.bytes(graph_field::key, "_output_shapes").message(graph_field::value, list);
    node.message(graph_field::attr, entry);
    all_.message(graph_field::node, node);
  }

  /// The name of a value for its readers; a value that no node makes becomes a node.
  const std::string& name_of(ValueId id) {
    std::string& name = names_[static_cast<std::size_t>(id.index)];
    if (!name.empty()) return name;
    const Value& value = graph_.value(id);
    const State* const state = states_[static_cast<std::size_t>(id.index)];
    std::string path = value.name;
    if (state != nullptr) path = state->path.empty() ? state->name : state->path;
    name = unique_name(path);
    const char* const op = state != nullptr                    ? "Parameter"
                           : value.kind == ValueKind::constant ? "Const"
                                                               : "Placeholder";
    add(name, op, {}, {id});
    return name;
  }

  void add(const Node& node) {
    std::vector<std::string> inputs;
    for (const ValueId input : node.inputs) {
      if (input) inputs.push_back(name_of(input));
    }
    const std::string name = unique_name(node.path);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i]) continue;
      std::string& output = names_[static_cast<std::size_t>(node.outputs[i].index)];
      output = i == 0 ? name : name + ":" + std::to_string(i);
    }
    add(name, node.op->name, inputs, node.outputs);
  }

  const Graph& graph_;
  WireMessage all_;
  std::vector<std::string> names_;    // by value
  std::vector<const State*> states_;  // by value
  std::set<std::string> taken_;
};

}  // namespace

std::string graph_def(const Graph& graph) { return GraphDefWriter(graph).write(); }

}  // namespace tandem
