#include "engine/passes/tables/cached_tables.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/graph/error.h"
#include "engine/graph/rewrite.h"
#include "engine/operators/tables/split_ids.h"
#include "engine/operators/tables/table_nodes.h"

namespace tandem {
namespace {

// A table in the old graph and its cache in the new one.
struct Cache {
  const CachedTable* table = nullptr;
  ValueId rows;
};

[[noreturn]] void refuse(const std::string& table, const std::string& path, const std::string& op) {
  throw Error(ErrorKind::usage, Diagnostic{.message = "a device caches rows of " + table +
                                                      ", which is read here as a whole",
                                           .path = path,
                                           .expected = "only lookups",
                                           .got = op,
                                           .fix = "leave `cache` out"});
}

class Split {
 public:
  Split(const Graph& graph, const OperatorSet& operators, const std::vector<CachedTable>& tables)
      : graph_(graph), to_(graph, operators) {
    for (const CachedTable& table : tables) add_cache(table);
  }

  Graph run() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const NodeId id{static_cast<std::int32_t>(n)};
      if (to_.is_live(id) && !try_split(id)) to_.copy(id);
    }
    for (const NamedValue& output : graph_.outputs) {
      if (const Cache* cache = cache_of(output.value))
        refuse(cache->table->table, output.name, "an output of the model");
    }
    return to_.finish();
  }

 private:
  void add_cache(const CachedTable& table) {
    const State* of = graph_.find_state(table.table);
    if (of == nullptr) return;
    State state = *of;
    state.name = cached_name(of->name);
    state.derived = CachedRows{of->name, table.rows};
    // Filled from the table where the state is made.
    Shape shape = of->start.shape();
    shape[0] = static_cast<std::int64_t>(table.rows->size());
    state.start = HostTensor(TensorType{of->start.dtype(), std::move(shape)});
    state.starts_at_zero = false;
    const ValueId initial = of->initial;
    caches_[initial.index] = {&table, to_.builder().state(std::move(state))};
  }

  const Cache* cache_of(ValueId value) const {
    const auto found = value ? caches_.find(value.index) : caches_.end();
    return found == caches_.end() ? nullptr : &found->second;
  }

  bool try_split(NodeId id) {
    const Node& node = graph_.node(id);
    const Cache* cache = nullptr;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Cache* read = cache_of(node.inputs[i]);
      if (read == nullptr) continue;
      if (i != 0 || !is_row_lookup(node)) refuse(read->table->table, node.path, node.op->name);
      cache = read;
    }
    if (cache == nullptr) return false;
    to_.scope_of(id);
    const auto [cold, hot] = split_ids(node.inputs[1], *cache);
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(to_.mapped(input));
    GraphBuilder& g = to_.builder();
    inputs[1] = cold;
    const ValueId from_table = g.add_node(node.op->name, inputs, node.attributes);
    g.set_scope({cached_name(node.path), node.phase, node.origins});
    inputs[0] = cache->rows;
    inputs[1] = hot;
    const ValueId from_cache = g.add_node(node.op->name, inputs, node.attributes);
    to_.replace(node.outputs[0], g.add(from_table, from_cache));
    return true;
  }

  std::pair<ValueId, ValueId> split_ids(ValueId ids, const Cache& cache) {
    const std::vector<std::int64_t>* cached = cache.table->rows.get();
    const auto [known, is_new] = splits_.try_emplace({ids.index, cached});
    if (!is_new) return known->second;
    GraphBuilder& g = to_.builder();
    const std::int64_t rows = graph_.find_state(cache.table->table)->start.shape()[0];
    const auto [marks, fresh] = marks_.try_emplace(cached);
    if (fresh) {
      CachedMarks made(*cached, rows);
      marks->second = {g.constant(std::move(made.marks), "cache.marks"),
                       g.constant(std::move(made.ranks), "cache.ranks")};
    }
    const std::vector<ValueId> split = g.node(
        "SplitIds", {to_.mapped(ids), marks->second.first, marks->second.second}, {{"rows", rows}});
    return known->second = {split[0], split[1]};
  }

  const Graph& graph_;
  GraphRewrite to_;
  std::map<std::int32_t, Cache> caches_;  // by the table's value
  using Values = std::pair<ValueId, ValueId>;
  std::map<std::pair<std::int32_t, const std::vector<std::int64_t>*>, Values> splits_;
  std::map<const std::vector<std::int64_t>*, Values> marks_;
};

}  // namespace

Graph split_cached_tables(const Graph& graph, const OperatorSet& operators,
                          const std::vector<CachedTable>& tables) {
  if (tables.empty()) return graph;
  Graph split = Split(graph, operators, tables).run();
  verify(split);
  return split;
}

}  // namespace tandem
