// Tables whose float32 values lie in two states (engine/graph/split_float.h): a bfloat16, which
// lookups read, and a tail of 16 bits. The update reads and writes both.
//
//   y = Gather(table, ids)            becomes   Cast(Gather(top, ids)), cast where y is read
//   y = EmbeddingBag(table, ids, w)   becomes   EmbeddingBag(top, ids, w), which sums in float32
//   RowsUpdate(table, states...)      becomes   RowsUpdate(top, states..., tail) {split}
#include <algorithm>
#include <map>

#include "engine/graph/error.h"
#include "engine/graph/split_float.h"
#include "engine/lower/placed_graph.h"
#include "engine/operators/tables/rows.h"
#include "engine/operators/tables/table_nodes.h"

namespace tandem {
namespace {

struct Halves {
  HostTensor top, tail;
};

Halves halves_of(const State& state) {
  const Shape& shape = state.start.shape();
  Halves halves{HostTensor(TensorType{DType::bfloat16, shape}),
                HostTensor(TensorType{DType::int16, shape})};
  if (state.starts_at_zero) return halves;
  split_floats(state.start.as<float>().data(), static_cast<std::uint16_t*>(halves.top.data()),
               halves.tail.as<std::int16_t>().data(), state.start.type().elements());
  return halves;
}

[[noreturn]] void refuse(const Node& node, const State& state, std::string message) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .path = state.path.empty() ? state.name : state.path,
                                           .got = node.path + " (" + node.op->name + ")"});
}

class SplitTables {
 public:
  explicit SplitTables(PlacedEdit& edit) : edit_(edit) {}

  void split(std::size_t s) {
    const State state = edit_.graph().states[s];
    const ValueId table = state.initial;
    Halves halves = halves_of(state);
    edit_.graph().value(table).type.dtype = DType::bfloat16;
    edit_.graph().states[s].start = std::move(halves.top);
    const NodeId update =
        state.final == table ? NodeId{} : edit_.graph().value(state.final).producer;
    for (NodeId reader : edit_.readers(table)) {
      if (reader == update) continue;
      Node& node = edit_.graph().node(reader);
      const bool reads_rows = node.inputs[0] == table;
      if (reads_rows && node.op->role == Role::embedding_bag)
        node.attributes.set("to", std::string(name_of(DType::float32)));
      else if (reads_rows && looks_up_rows(node))
        widen_result(reader);
      else
        refuse(node, state, "a split table is read by something else than a lookup");
    }
    Value value = edit_.graph().value(table);
    value.name += "/tail";
    value.type.dtype = DType::int16;
    const ValueId tail = edit_.add_value(std::move(value));
    State other;
    other.name = state.name + "/tail";
    other.kind = StateKind::optimizer;
    other.parameter = state.name;
    other.derived = LowHalf{state.name};
    other.initial = tail;
    other.final = update ? update_both(update, state, tail) : tail;
    other.start = std::move(halves.tail);
    other.starts_at_zero = state.starts_at_zero;
    edit_.add_state(std::move(other), edit_.state_device(s), edit_.place(s).lookahead);
  }

 private:
  // Readers of the rows get float32, cast on the reader's device, so that the link carries 16 bits.
  void widen_result(NodeId lookup) {
    Graph& graph = edit_.graph();
    const ValueId y = graph.node(lookup).outputs[0];
    graph.value(y).type.dtype = DType::bfloat16;
    std::map<int, ValueId> casts;
    const auto cast_on = [&](int device) {
      ValueId& cast = casts[device];
      if (cast) return cast;
      const NodeId node =
          edit_.add("Cast", {y}, {{"to", std::string(name_of(DType::float32))}}, lookup);
      edit_.set_device(node, device);
      cast = edit_.graph().node(node).outputs[0];
      edit_.graph().value(cast).name =
          edit_.graph().value(y).name + "@float32@" + edit_.context().devices[device]->name();
      return cast;
    };
    for (NodeId reader : edit_.readers(y)) {
      const ValueId wide = cast_on(edit_.device(reader));
      for (ValueId& input : edit_.graph().node(reader).inputs) {
        if (input == y) input = wide;
      }
    }
    for (NamedValue& output : edit_.graph().outputs) {
      if (output.value == y) output.value = cast_on(host);
    }
  }

  // Makes the update write both halves; returns the new tail.
  ValueId update_both(NodeId update, const State& state, ValueId tail) {
    const Node node = edit_.graph().node(update);
    if (node.op->role != Role::rows_update)
      refuse(node, state, "a split table needs an update of rows");
    const std::size_t first = RowsOperands(node).unique();
    std::vector<ValueId> inputs = node.inputs;
    inputs.insert(inputs.begin() + static_cast<std::ptrdiff_t>(first), tail);
    Attributes attributes = node.attributes;
    attributes.set("split", std::int64_t{1});
    const NodeId both = edit_.add("RowsUpdate", std::move(inputs), std::move(attributes), update);
    const std::vector<ValueId> outputs = edit_.graph().node(both).outputs;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      edit_.replace(node.outputs[i], outputs[i]);
    return outputs.back();
  }

  PlacedEdit& edit_;
};

}  // namespace

PlacedGraph split_tables(PlacedGraph placed, const LowerContext& context) {
  const std::vector<std::string>& names = context.options.split_tables;
  if (names.empty()) return placed;
  PlacedEdit edit(std::move(placed), context);
  SplitTables tables(edit);
  const std::size_t count = edit.graph().states.size();
  for (std::size_t s = 0; s < count; ++s) {
    const std::string& table = edit.graph().states[s].source<CachedRows>();
    if (std::find(names.begin(), names.end(), table) != names.end()) tables.split(s);
  }
  return edit.finish();
}

}  // namespace tandem
