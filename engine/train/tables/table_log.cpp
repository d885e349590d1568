// Which nodes work on rows of tables, and the ids that they are fed.
#include "engine/train/tables/table_log.h"

#include <algorithm>

#include "engine/operators/operator.h"
#include "engine/operators/tables/rows.h"
#include "engine/operators/tables/table_nodes.h"
#include "engine/train/tables/id_source.h"

namespace tandem {
namespace {

/// Ids that are counted together.
struct IdSet {
  std::vector<IdSource> sources;
  // If set, the ids of all micro-batches so far that marked rows in this state are counted instead.
  std::string marks;
  std::int64_t table_rows = 0;
  bool operator==(const IdSet&) const = default;
};

struct IdCount {
  IdSet ids;
  double total = 0, unique = 0;  // sums over micro-batches
  int micro_batches = 0;
};

/// Bytes of a node: per_micro_batch + ids x per_id + rows that occur x per_row.
struct TableNode {
  NodeId node;
  std::size_t count = 0;  // its ids, a number in Tables::counts
  double per_micro_batch = 0, per_id = 0, per_row = 0;
  std::optional<std::size_t> cached = {};  // its ids that a cache serves, another of Tables::counts
};

/// A node that adds to the marked rows of a table.
struct Marking {
  std::string state;
  bool first = false;  // forgets those of the step before
  std::vector<IdSource> sources;
};

/// The state whose value at the start of the micro-batch this is, or null.
const State* state_of(const Lowered& lowered, ValueId value) {
  const Graph& graph = lowered.graph;
  for (;;) {
    value = before_copies(graph, value);
    const NodeId producer = graph.value(value).producer;
    if (!producer) break;
    const bool goes_on =
        lowered.nodes[producer.index].is_view() || graph.node(producer).op->role == Role::row_marks;
    if (!goes_on) return nullptr;
    value = graph.node(producer).inputs[0];
  }
  const auto found = std::find_if(graph.states.begin(), graph.states.end(),
                                  [&](const State& state) { return state.initial == value; });
  return found != graph.states.end() ? &*found : nullptr;
}

double row_bytes(const TensorType& type) {
  return type.shape[0] == 0
             ? 0
             : static_cast<double>(type.bytes()) / static_cast<double>(type.shape[0]);
}

std::optional<std::vector<IdSource>> sources_of(const Lowered& lowered, const Node& node,
                                                std::size_t first) {
  std::vector<IdSource> sources;
  for (std::size_t i = first; i < node.inputs.size(); ++i) {
    std::optional<IdSource> source = source_of(lowered, node.inputs[i]);
    if (!source) return std::nullopt;
    sources.push_back(std::move(*source));
  }
  return sources;
}

}  // namespace

struct TableCounter::Tables {
  explicit Tables(const Lowered& lowered);

  std::vector<IdCount> counts;
  std::vector<TableNode> nodes;
  std::vector<Marking> markings;

 private:
  std::size_t count_of(IdSet ids);
  void add(TableNode node, IdSet ids);
  /// The ids that `groups`, a result of UniqueIndices or TouchedRows, was made from.
  std::optional<IdSet> grouped(ValueId groups) const;
  void add_marking(NodeId id);
  void add_lookup(NodeId id);
  void add_packed_lookup(NodeId id);
  void add_cached_lookup(NodeId id);
  void add_split(NodeId id);
  void add_groups(NodeId id);
  void add_update(NodeId id);

  const Lowered& lowered_;  // while this is made
  const Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;
};

std::size_t TableCounter::Tables::count_of(IdSet ids) {
  const auto known = std::find_if(counts.begin(), counts.end(),
                                  [&](const IdCount& count) { return count.ids == ids; });
  const auto place = static_cast<std::size_t>(known - counts.begin());
  if (known == counts.end()) counts.push_back({std::move(ids)});
  return place;
}

void TableCounter::Tables::add(TableNode node, IdSet ids) {
  node.count = count_of(std::move(ids));
  nodes.push_back(node);
}

std::optional<IdSet> TableCounter::Tables::grouped(ValueId groups) const {
  const Node* node = producer_of(graph_, before_copies(graph_, groups));
  if (node == nullptr) return std::nullopt;
  if (node->op->role == Role::id_groups) {
    std::optional<std::vector<IdSource>> sources = sources_of(lowered_, *node, 0);
    if (!sources) return std::nullopt;
    return IdSet{std::move(*sources), "", node->attributes.integer("rows")};
  }
  if (node->op->role != Role::marked_rows) return std::nullopt;
  const State* state = state_of(lowered_, node->inputs[0]);
  if (state == nullptr) return std::nullopt;
  const bool is_known = std::any_of(markings.begin(), markings.end(), [&](const Marking& marking) {
    return marking.state == state->name;
  });
  if (!is_known) return std::nullopt;
  return IdSet{{}, state->name, graph_.type(node->inputs[0]).elements()};
}

void TableCounter::Tables::add_marking(NodeId id) {
  const Node& node = graph_.node(id);
  const State* state = state_of(lowered_, node.inputs[0]);
  std::optional<std::vector<IdSource>> sources = sources_of(lowered_, node, 1);
  if (state != nullptr && sources)
    markings.push_back({state->name, node.attributes.flag("first"), std::move(*sources)});
}

// Gather(table, ids) and EmbeddingBag(table, ids, weights): rows that occur are read once, ids and
// weights once, results are written.
void TableCounter::Tables::add_lookup(NodeId id) {
  const Node& node = graph_.node(id);
  if (state_of(lowered_, node.inputs[0]) == nullptr) return;
  std::optional<IdSource> source = source_of(lowered_, node.inputs[1]);
  if (!source) return;
  const TensorType& table = graph_.type(node.inputs[0]);
  const double row = row_bytes(table);
  const double id_bytes = static_cast<double>(size_of(graph_.type(node.inputs[1]).dtype));
  TableNode lookup{id, 0, 0, id_bytes, row};
  lookup.per_micro_batch = static_cast<double>(graph_.type(node.outputs[0]).bytes());
  if (node.inputs.size() > 2 && node.inputs[2])
    lookup.per_micro_batch += static_cast<double>(graph_.type(node.inputs[2]).bytes());
  add(lookup, {{std::move(*source)}, "", table.shape[0]});
}

// GatherAdd(base, cache, places): places are read, and for each that there is a row is read, added
// and written.
void TableCounter::Tables::add_cached_lookup(NodeId id) {
  const Node& node = graph_.node(id);
  if (state_of(lowered_, node.inputs[1]) == nullptr) return;
  std::optional<IdSource> source = source_of(lowered_, node.inputs[2]);
  if (!source) return;
  const TensorType& cache = graph_.type(node.inputs[1]);
  const double row = row_bytes(cache);
  const auto places = static_cast<double>(graph_.type(node.inputs[2]).bytes());
  add({id, 0, places, 2 * row, row}, {{std::move(*source)}, "", cache.shape[0]});
}

// SplitIds(ids): each id read and written, and an int32.
void TableCounter::Tables::add_split(NodeId id) {
  const Node& node = graph_.node(id);
  std::optional<IdSource> all = source_of(lowered_, node.inputs[0]);
  std::optional<IdSource> hot = source_of(lowered_, node.outputs[1]);
  if (!all || !hot) return;
  const double id_bytes = static_cast<double>(size_of(graph_.type(node.inputs[0]).dtype));
  const std::int64_t rows = node.attributes.integer("rows");
  TableNode split{id, 0, 0, 2 * id_bytes + 4, 0, std::nullopt};
  split.cached = count_of({{std::move(*hot)}, "", rows});
  add(split, {{std::move(*all)}, "", rows});
}

// GatherRows(table, unique, count): int64 row, read, written.
void TableCounter::Tables::add_packed_lookup(NodeId id) {
  const Node& node = graph_.node(id);
  std::optional<IdSet> ids = grouped(node.inputs[1]);
  if (!ids) return;
  add({id, 0, 0, 0, 8 + 2 * row_bytes(graph_.type(node.inputs[0]))}, std::move(*ids));
}

// Per id: itself, its place in the order, its row where that is read; per row: itself, its offset.
void TableCounter::Tables::add_groups(NodeId id) {
  const Node& node = graph_.node(id);
  std::optional<IdSet> ids = grouped(node.outputs[UniqueOutputs::unique]);
  if (!ids || node.inputs.empty()) return;
  const ValueId inverse = node.outputs[UniqueOutputs::inverse];
  double all_bytes = 0, all_ids = 0;  // lookups may have ids of two types
  for (const ValueId input : node.inputs) {
    all_bytes += static_cast<double>(graph_.type(input).bytes());
    all_ids += static_cast<double>(graph_.type(input).elements());
  }
  const double id_bytes = all_ids > 0 ? all_bytes / all_ids : 0;
  const double inverse_bytes = inverse && !readers_[inverse.index].empty() ? 4 : 0;
  add({id, 0, 0, id_bytes + 4 + inverse_bytes, 8 + 4}, std::move(*ids));
}

// Gradient rows with their places, and read and written: rows of master and states, all of them
// where the update is not lazy.
void TableCounter::Tables::add_update(NodeId id) {
  const Node& node = graph_.node(id);
  const RowsOperands at(node);
  std::optional<IdSet> ids = grouped(node.inputs[at.unique()]);
  if (!ids) return;
  TableNode update{id, 0, 0, 0, 8 + 4};
  const bool lazy = node.attributes.flag("lazy");
  for (std::size_t i = 0; i <= at.states; ++i) {
    if (!node.inputs[i]) continue;
    const TensorType& type = graph_.type(node.inputs[i]);
    (lazy ? update.per_row : update.per_micro_batch) +=
        2 * (lazy ? row_bytes(type) : static_cast<double>(type.bytes()));
  }
  // Gradients that were summed by row before have one position a row, and room for more.
  const Node* order = producer_of(graph_, before_copies(graph_, node.inputs[at.order()]));
  const bool by_id = order != nullptr && order->op->role == Role::id_groups;
  (by_id ? update.per_id : update.per_row) += 4;
  for (std::size_t i = at.gradients(); i < node.inputs.size(); ++i) {
    if (!node.inputs[i]) continue;
    const TensorType& dy = graph_.type(node.inputs[i]);
    (by_id ? update.per_micro_batch : update.per_row) +=
        by_id ? static_cast<double>(dy.bytes()) : row_bytes(dy);
  }
  add(update, std::move(*ids));
}

TableCounter::Tables::Tables(const Lowered& lowered)
    : lowered_(lowered), graph_(lowered.graph), readers_(readers_of(lowered.graph)) {
  using enum Role;
  constexpr std::pair<Role, void (Tables::*)(NodeId)> adders[] = {
      {row_marks, &Tables::add_marking},    {lookup, &Tables::add_lookup},
      {embedding_bag, &Tables::add_lookup}, {cached_lookup, &Tables::add_cached_lookup},
      {id_split, &Tables::add_split},       {packed_rows, &Tables::add_packed_lookup},
      {id_groups, &Tables::add_groups},     {rows_update, &Tables::add_update},
  };
  for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (lowered_.nodes[n].kernel == nullptr) continue;
    const Node& node = graph_.nodes[n];
    if (node.op->role == lookup && !looks_up_rows(node)) continue;
    const auto* adder = std::find_if(std::begin(adders), std::end(adders),
                                     [&](const auto& each) { return each.first == node.op->role; });
    if (adder != std::end(adders)) (this->*adder->second)(NodeId{static_cast<std::int32_t>(n)});
  }
}

TableCounter::TableCounter() = default;
TableCounter::~TableCounter() = default;

void TableCounter::after(Program& program, std::uint64_t ticket) {
  std::unique_ptr<Tables>& known = programs_[&program];
  if (!known) known = std::make_unique<Tables>(program.lowered());
  Tables& tables = *known;
  for (const Marking& marking : tables.markings) {
    std::vector<std::int64_t>& marked = marked_[marking.state];
    if (marking.first) marked.clear();
    for (const IdSource& source : marking.sources) append_ids(source, program, ticket, marked);
  }
  std::vector<std::int64_t> ids;
  for (IdCount& count : tables.counts) {
    ids.clear();
    if (!count.ids.marks.empty()) ids = marked_[count.ids.marks];
    for (const IdSource& source : count.ids.sources) append_ids(source, program, ticket, ids);
    count.total += static_cast<double>(ids.size());
    count.unique += static_cast<double>(count_unique(ids, count.ids.table_rows));
    ++count.micro_batches;
  }
}

std::optional<TableUse> TableCounter::use(const Program& program, NodeId node) const {
  const auto at = programs_.find(&program);
  if (at == programs_.end()) return std::nullopt;
  for (const TableNode& table : at->second->nodes) {
    if (!(table.node == node)) continue;
    const IdCount& count = at->second->counts[table.count];
    TableUse use;
    use.ids = count.total / count.micro_batches;
    use.unique = count.unique / count.micro_batches;
    use.bytes = table.per_micro_batch + use.ids * table.per_id + use.unique * table.per_row;
    if (table.cached) {
      const IdCount& cached = at->second->counts[*table.cached];
      use.cached = cached.total / cached.micro_batches;
    }
    return use;
  }
  return std::nullopt;
}

void TableCounter::clear() {
  programs_.clear();
  marked_.clear();
}

}  // namespace tandem
