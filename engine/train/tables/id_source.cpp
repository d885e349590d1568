// Ids of a micro-batch lie in the slots of its inputs until the loader may fill these again.
#include "engine/train/tables/id_source.h"

#include <algorithm>

#include "engine/operators/operator.h"
#include "engine/operators/tables/rows.h"
#include "engine/operators/tables/split_ids.h"
#include "engine/operators/tables/table_nodes.h"
#include "engine/runtime/layout_copy.h"

namespace tandem {
namespace {

bool is_copy(const Node& node) {
  const std::string& op = node.op->name;
  return op == "Transfer" || op == "Copy" || op == "Cast" || op == "Identity";
}

bool is_readable(DType dtype) {
  return dtype == DType::int64 || dtype == DType::int32 || dtype == DType::int16 ||
         dtype == DType::uint16 || dtype == DType::uint8 || dtype == DType::int8;
}

// Keeps, among the ids from `first` on, those that go to the table or to its cache.
void keep_part(const IdSource& source, std::size_t first, std::vector<std::int64_t>& ids) {
  const std::int64_t* marks = source.marks->as<std::int64_t>().data();
  const std::int32_t* ranks = source.ranks->as<std::int32_t>().data();
  std::size_t kept = first;
  for (std::size_t i = first; i < ids.size(); ++i) {
    const SplitId<std::int64_t> split(ids[i], source.table_rows, marks, ranks);
    const bool is_cached = split.hot != absent_id<std::int32_t>;
    if (is_cached == source.cached) ids[kept++] = is_cached ? split.hot : split.cold;
  }
  ids.resize(kept);
}

}  // namespace

const Node* producer_of(const Graph& graph, ValueId value) {
  const NodeId producer = graph.value(value).producer;
  return producer ? &graph.node(producer) : nullptr;
}

ValueId before_copies(const Graph& graph, ValueId value) {
  for (const Node* node = producer_of(graph, value); node != nullptr && is_copy(*node);
       node = producer_of(graph, value)) {
    value = node->inputs[0];
  }
  return value;
}

std::optional<IdSource> source_of(const Lowered& lowered, ValueId ids) {
  const Graph& graph = lowered.graph;
  IdSource source;
  source.shape = graph.type(ids).shape;
  source.layout = lowered.values[ids.index].layout;
  for (;;) {
    ValueId base = ids;  // whose buffer the view shows
    for (NodeId producer = graph.value(base).producer;
         producer && lowered.nodes[producer.index].is_view();
         producer = graph.value(base).producer) {
      base = graph.node(producer).inputs[0];
    }
    const Value& value = graph.value(base);
    const LoweredValue& place = lowered.values[base.index];
    if (!source.layout.is_strided()) return std::nullopt;
    if (value.kind == ValueKind::input || value.kind == ValueKind::constant) {
      source.dtype = value.type.dtype;
      if (!is_readable(source.dtype)) return std::nullopt;
      if (value.kind == ValueKind::constant) {
        if (!is_row_major(place.layout, value.type.shape)) return std::nullopt;
        source.constant = value.constant;
        return source;
      }
      const auto input = std::find_if(graph.inputs.begin(), graph.inputs.end(),
                                      [&](const NamedValue& named) { return named.value == base; });
      if (input == graph.inputs.end() || place.device != 0) return std::nullopt;
      source.input = static_cast<int>(input - graph.inputs.begin());
      return source;
    }
    const Node* copy = producer_of(graph, base);
    if (copy != nullptr && copy->op->role == Role::id_split && !source.marks) {
      source.marks = graph.value(copy->inputs[1]).constant;
      source.ranks = graph.value(copy->inputs[2]).constant;
      source.table_rows = copy->attributes.integer("rows");
      source.cached = value.output_index == 1;
      if (!source.marks || !source.ranks) return std::nullopt;
    } else if (copy == nullptr || !is_copy(*copy)) {
      return std::nullopt;
    }
    ids = copy->inputs[0];
    const Layout& before = lowered.values[ids.index].layout;
    if (element_count(source.shape) == value.type.elements()) {  // the whole copy, in any order
      source.shape = value.type.shape;
      source.layout = before;
    } else if (!is_row_major(place.layout, value.type.shape) || place.layout.offset != 0 ||
               !is_row_major(before, value.type.shape) || before.offset != 0) {
      return std::nullopt;  // a part of the copy, whose elements are in other places before it
    }
  }
}

void append_ids(const IdSource& source, Program& program, std::uint64_t ticket,
                std::vector<std::int64_t>& to) {
  const void* data =
      source.constant ? source.constant->data() : program.input_slot(source.input, ticket);
  const std::size_t first = to.size();
  HostTensor ids(TensorType{source.dtype, source.shape});
  from_layout(ids.data(), data, source.layout, ids.type());
  for (const std::int64_t id : ids.integers())
    to.push_back(id == absent_id_of(source.dtype) ? absent_id<std::int64_t> : id);
  if (source.marks) keep_part(source, first, to);
}

std::int64_t count_unique(std::vector<std::int64_t>& ids, std::int64_t table_rows) {
  std::erase(ids, absent_id<std::int64_t>);
  for (std::int64_t& id : ids) {
    if (id < 0) id += table_rows;
    id = std::clamp<std::int64_t>(id, 0, table_rows - 1);
  }
  if (table_rows > 64 * static_cast<std::int64_t>(ids.size())) {  // more marks than ids have bits
    std::sort(ids.begin(), ids.end());
    return std::unique(ids.begin(), ids.end()) - ids.begin();
  }
  std::vector<bool> seen(static_cast<std::size_t>(table_rows));
  std::int64_t unique = 0;
  for (const std::int64_t id : ids) {
    if (seen[static_cast<std::size_t>(id)]) continue;
    seen[static_cast<std::size_t>(id)] = true;
    ++unique;
  }
  return unique;
}

}  // namespace tandem
