#include "engine/train/sharding/shard_tables.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <utility>

#include "engine/graph/error.h"
#include "engine/graph/rewrite.h"
#include "engine/graph/shard_conversion.h"
#include "engine/operators/collectives/collective.h"
#include "engine/operators/product_weights.h"
#include "engine/operators/tables/shard_rows.h"
#include "engine/operators/tables/table_nodes.h"
#include "engine/train/sharding/shard_bags.h"
#include "engine/train/sharding/table_owners.h"

namespace tandem {
namespace {

/// A table, and the lookups of it in their order.
struct ShardedTable {
  std::size_t state = 0;
  ValueId initial;
  TensorType type;                     // type of the whole table
  std::int64_t rows = 0, columns = 0;  // columns of a matrix
  std::vector<NodeId> lookups;
  std::vector<NodeId> sums;  // lookups of which sums cross, not rows
  Sharding sharding = Sharding::rows;
  int owner = -1;  // rank that keeps a whole table

  bool by_rows() const { return sharding == Sharding::rows; }
  bool by_columns() const { return sharding == Sharding::columns; }
};

/// Lookups of a table whose ids are all known before the first of them, and the ids, each once.
struct LookupGroup {
  const ShardedTable* table = nullptr;
  std::vector<NodeId> lookups;
  std::vector<ValueId> ids;
};

constexpr const char* lookups_alone =
    "a table that only lookups by ids read (Gather along axis 0, sums of such rows)";

[[noreturn]] void refuse(const State& state, Sharding sharding, const std::string& why,
                         std::string got, std::string expected = lookups_alone) {
  const std::string word(name_of(sharding));
  Diagnostic d;
  d.path = state.path.empty() ? state.name : state.path;
  d.message =
      (sharding == Sharding::table ? "it cannot be on one rank only: "
                                   : "its " + word + " cannot be sharded over the ranks: ") +
      why;
  d.expected = std::move(expected);
  d.got = std::move(got);
  d.fix = "remove `shard = \"" + word + "\"` from it";
  throw Error(ErrorKind::usage, std::move(d));
}

ShardKind kind_of(const ShardedTable& table) {
  if (table.by_columns()) return ShardKind::column_blocks;
  return table.by_rows() ? ShardKind::rows : ShardKind::table;
}

std::string who(const Node& node) { return node.path + " (" + node.op->name + ")"; }

ShardedTable table_of(const Graph& graph, std::size_t s, Sharding sharding, int ranks) {
  const State& state = graph.states[s];
  const TensorType& type = graph.type(state.initial);
  ShardedTable table;
  table.state = s;
  table.initial = state.initial;
  table.type = type;
  table.rows = type.rank() > 0 ? type.shape[0] : 0;
  table.columns = type.rank() == 2 ? type.shape[1] : 0;
  table.sharding = sharding;
  if (table.rows < 1) refuse(state, sharding, "it has none", to_string(type));
  if (!(state.final == state.initial))
    refuse(state, sharding, "the model changes it itself", "a written state");
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!(node.inputs[i] == state.initial)) continue;
      if (i != 0 || !is_row_lookup(node))
        refuse(state, sharding, "something else reads it", who(node));
    }
    if (!node.inputs.empty() && node.inputs[0] == state.initial)
      table.lookups.push_back({static_cast<std::int32_t>(n)});
  }
  for (const NamedValue& output : graph.outputs) {
    if (output.value == state.initial)
      refuse(state, sharding, "it is a result", "output " + output.name);
  }
  for (const State& other : graph.states) {
    if (other.derived.is_of<CachedRows>(state.name))
      refuse(state, sharding, "a cache holds some of its rows", "the cache " + other.name);
  }
  if (!table.by_columns()) return table;
  if (type.rank() != 2) refuse(state, sharding, "it is no matrix", to_string(type));
  if (block_of(type.shape[1], ranks - 1, ranks).filled < 1) {
    std::int64_t most = std::min<std::int64_t>(ranks, type.shape[1]);
    while (block_of(type.shape[1], static_cast<int>(most) - 1, static_cast<int>(most)).filled < 1)
      --most;
    refuse(state, sharding, "some of " + std::to_string(ranks) + " ranks would have none",
           to_string(type), "at most " + std::to_string(most) + " ranks");
  }
  return table;
}

// Elements of all ids that look it up, a sample.
double ids_a_sample(const Graph& graph, const ShardedTable& table, const RankShares& ranks) {
  double ids = 0;
  for (const NodeId lookup : table.lookups)
    ids += static_cast<double>(graph.type(graph.node(lookup).inputs[1]).elements());
  return ids / static_cast<double>(std::max<std::int64_t>(ranks.own, 1));
}

void choose_owners(const Graph& graph, const RankShares& ranks, std::vector<ShardedTable>& tables) {
  std::vector<TableLoad> loads;
  for (const ShardedTable& table : tables) {
    if (table.sharding != Sharding::table) continue;
    const TensorType& type = graph.type(table.initial);
    const auto row = static_cast<double>(type.bytes()) / static_cast<double>(table.rows);
    loads.push_back({graph.states[table.state].name, static_cast<double>(type.bytes()),
                     row * ids_a_sample(graph, table, ranks)});
  }
  const std::map<std::string, int> owners = table_owners(std::move(loads), ranks.ranks);
  for (ShardedTable& table : tables) {
    const auto found = owners.find(graph.states[table.state].name);
    if (found != owners.end()) table.owner = found->second;
  }
}

bool is_looked_up(const Graph& graph, ValueId table) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return is_row_lookup(node) && node.inputs[0] == table;
  });
}

std::vector<ShardedTable> sharded_tables(const Graph& graph, const Shardings& shards,
                                         const RankShares& ranks) {
  std::vector<ShardedTable> tables;
  for (std::size_t s = 0; s < graph.states.size(); ++s) {
    const auto found = shards.find(graph.states[s].name);
    if (found == shards.end()) continue;
    const Sharding sharding = found->second;
    const ValueId initial = graph.states[s].initial;
    const bool is_table =
        sharding == Sharding::table ||
        (sharding == Sharding::rows && !product_weight_obstacle(graph, initial).empty()) ||
        (sharding == Sharding::columns && is_looked_up(graph, initial));
    if (is_table) tables.push_back(table_of(graph, s, sharding, ranks.ranks));
  }
  choose_owners(graph, ranks, tables);
  return tables;
}

/// Takes lookups whose sums cross out of the others: all of the same ids or none, as rows of
/// several tables go with one exchange of ids.
void set_sums_apart(const Graph& graph, const RankShares& ranks,
                    std::vector<ShardedTable>& tables) {
  const auto ids_of = [&](NodeId lookup) { return graph.node(lookup).inputs[1].index; };
  std::map<std::int32_t, std::vector<TableLookup>> by_ids;
  std::set<std::int32_t> ask_for_rows;
  for (const ShardedTable& table : tables) {
    for (const NodeId lookup : table.lookups) {
      by_ids[ids_of(lookup)].push_back({lookup, table.type});
      if (!table.by_rows()) ask_for_rows.insert(ids_of(lookup));
    }
  }
  for (const auto& [ids, lookups] : by_ids) {
    if (!crosses_as_sums(graph, lookups, ranks)) ask_for_rows.insert(ids);
  }
  for (ShardedTable& table : tables) {
    const auto first_sum =
        std::stable_partition(table.lookups.begin(), table.lookups.end(),
                              [&](NodeId lookup) { return ask_for_rows.contains(ids_of(lookup)); });
    table.sums.assign(first_sum, table.lookups.end());
    table.lookups.erase(first_sum, table.lookups.end());
  }
}

// Ids that are made after the first lookup, perhaps from its result, go with a later one.
std::vector<LookupGroup> groups_of(const Graph& graph, const ShardedTable& table) {
  std::vector<LookupGroup> groups;
  for (const NodeId lookup : table.lookups) {
    const ValueId ids = graph.node(lookup).inputs[1];
    const NodeId producer = graph.value(ids).producer;
    if (groups.empty() || (producer && producer.index > groups.back().lookups[0].index))
      groups.push_back({&table, {}, {}});
    LookupGroup& group = groups.back();
    group.lookups.push_back(lookup);
    if (std::find(group.ids.begin(), group.ids.end(), ids) == group.ids.end())
      group.ids.push_back(ids);
  }
  return groups;
}

class ShardTables {
 public:
  ShardTables(const Graph& from, const RankShares& ranks)
      : from_(from), ranks_(ranks), bags_(ranks) {}

  void add(const ShardedTable& table) {
    for (LookupGroup& group : groups_of(from_, table)) {
      for (const NodeId lookup : group.lookups) group_of_[lookup.index] = groups_.size();
      groups_.push_back(std::move(group));
    }
    for (const NodeId bag : table.sums) rows_of_sum_[bag.index] = table.rows;
  }

  bool replace(GraphRewrite& to, NodeId id) {
    if (const auto sum = rows_of_sum_.find(id.index); sum != rows_of_sum_.end()) {
      to.replace(from_.node(id).outputs[0], bags_.sums(to, id, sum->second));
      return true;
    }
    const auto found = group_of_.find(id.index);
    if (found == group_of_.end()) return false;
    const std::size_t g = found->second;
    const LookupGroup& group = groups_[g];
    if (!rows_.contains(g)) rows_[g] = exchanged_rows(to, group);
    const Node& node = from_.node(id);
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(to.mapped(input));
    inputs[0] = rows_.at(g);
    to.scope_of(id);
    inputs[1] = position(to, group, node.inputs[1]);
    const ValueId y = to.builder().add_node(node.op->name, std::move(inputs), node.attributes);
    to.replace(node.outputs[0], y);
    return true;
  }

 private:
  /// An exchange for tables with equally many rows that look up the same ids: which rank asks which
  /// other for which rows.
  struct Asked {
    std::int64_t places = 0;          // positions of UniqueIndices there is room for
    ValueId inverse;                  // per id its position
    std::vector<std::int64_t> first;  // where the ids of each array begin in `inverse`
    ValueId sent, received;           // counts
    ValueId ids;                      // that this rank is asked for, rows of its part
    double filled = 1;                // share of the room for them that is used, about
    ValueId pieces;                   // by columns: where each rank's piece of a row comes
  };
  struct Key {
    std::int64_t rows = 0;
    Sharding sharding = Sharding::rows;
    int owner = -1;  // rank that keeps a whole table
    std::vector<std::int32_t> ids;
    auto operator<=>(const Key&) const = default;
  };

  static Key key_of(const LookupGroup& group) {
    Key key{group.table->rows, group.table->sharding, group.table->owner, {}};
    for (const ValueId ids : group.ids) key.ids.push_back(ids.index);
    return key;
  }
  /// For a table that is whole, or sharded by columns, the places are its rows.
  ShardedRows shards_of(const LookupGroup& group) const {
    return {group.table->rows, group.table->by_rows() ? ranks_.ranks : 1};
  }
  Attributes shared(const ShardedRows& shards) const {
    return {{"rows", shards.rows}, {"ranks", shards.ranks}};
  }

  const Asked& asked(GraphRewrite& to, const LookupGroup& group) {
    const auto [at, is_new] = asked_.try_emplace(key_of(group));
    Asked& made = at->second;
    if (!is_new) return made;
    GraphBuilder& g = to.builder();
    const ShardedRows shards = shards_of(group);
    std::vector<ValueId> places;
    std::int64_t own = 0, most = 0;
    for (const ValueId ids : group.ids) {
      // The first lookup of these ids reports those that are out of range.
      const auto lookup = std::find_if(group.lookups.begin(), group.lookups.end(),
                                       [&](NodeId id) { return from_.node(id).inputs[1] == ids; });
      to.scope_of(*lookup);
      places.push_back(g.add_node("ShardIds", {to.mapped(ids)}, shared(shards)));
      made.first.push_back(own);
      own += from_.type(ids).elements();
      most += most_elements(from_, ids, ranks_);
    }
    to.scope_of(group.lookups[0], group.lookups);
    const std::vector<ValueId> unique =
        g.node("UniqueIndices", std::move(places),
               {{"rows", shards.places()}, {"quiet", std::int64_t{1}}});
    made.places = g.shape(unique[UniqueOutputs::unique])[0];
    made.inverse = unique[UniqueOutputs::inverse];
    const std::int64_t ranks = ranks_.ranks, owner = group.table->owner;
    const bool by_columns = group.table->by_columns();
    const std::vector<ValueId> rows =
        g.node(by_columns ? "ShardColumns" : "ShardRows",
               {unique[UniqueOutputs::unique], unique[UniqueOutputs::count]},
               by_columns ? Attributes{{"ranks", ranks}} : shared(shards));
    if (by_columns) made.pieces = rows[2];
    made.sent = owner < 0 ? rows[1] : to_one(g, rows[1], owner);
    made.received = g.add_node(all_to_all_name, {made.sent}, {{"ranks", ranks}});
    // The others are never asked for rows of a whole table.
    const bool is_asked = owner < 0 || owner == ranks_.rank;
    // For a table by rows there is room for the case that a rank wants all its rows from one rank;
    // `filled` assumes that it wants equally many from each.
    const std::int64_t room = std::min(most, shards.part());
    if (group.table->by_rows() && room > 0)
      made.filled =
          static_cast<double>(std::min(most, shards.rows)) / static_cast<double>(ranks * room);
    made.ids = g.add_node(
        exchange_rows_name, {rows[0], made.sent, made.received},
        {{"ranks", ranks}, {"rows", is_asked ? ranks * room : 1}, {"filled", made.filled}});
    return made;
  }

  /// Counts by rank, of which all but the owner's are 0.
  ValueId to_one(GraphBuilder& g, ValueId count, std::int64_t owner) const {
    std::vector<ValueId> parts{count};
    const auto zeros = [&](std::int64_t some) { return g.filled(0, {DType::int32, {some}}); };
    if (owner > 0) parts.insert(parts.begin(), zeros(owner));
    if (owner + 1 < ranks_.ranks) parts.push_back(zeros(ranks_.ranks - owner - 1));
    return g.add_node("Concat", std::move(parts), {{"axis", std::int64_t{0}}});
  }

  ValueId exchanged_rows(GraphRewrite& to, const LookupGroup& group) {
    const Asked& by_all = asked(to, group);
    GraphBuilder& g = to.builder();
    to.scope_of(group.lookups[0], group.lookups);
    const ValueId part = to.mapped(group.table->initial);
    const Attributes first_axis{{"axis", std::int64_t{0}}};
    const ValueId rows = g.add_node("Gather", {part, by_all.ids}, first_axis);
    const std::int64_t ranks = ranks_.ranks, pieces = by_all.pieces ? ranks : 1;
    const ValueId come =
        g.add_node(exchange_rows_name, {rows, by_all.received, by_all.sent},
                   {{"ranks", ranks}, {"rows", pieces * by_all.places}, {"filled", by_all.filled}});
    if (!by_all.pieces) return come;
    // [places, ranks, share] -> [places, ranks * share] without the padding of the last rank.
    const ValueId by_rank = g.add_node("Gather", {come, by_all.pieces}, first_axis);
    const std::int64_t share = g.shape(come)[1], columns = group.table->columns;
    const ValueId padded = g.reshape(by_rank, {by_all.places, ranks * share});
    if (columns == ranks * share) return padded;
    return g.add_node(
        "Slice", {padded},
        {{"starts", Ints{0, 0}}, {"sizes", Ints{by_all.places, columns}}, {"steps", Ints{1, 1}}});
  }

  /// For each of the ids, its row among those that have come.
  ValueId position(GraphRewrite& to, const LookupGroup& group, ValueId ids) const {
    GraphBuilder& g = to.builder();
    const Asked& by_all = asked_.at(key_of(group));
    const auto k = static_cast<std::size_t>(std::find(group.ids.begin(), group.ids.end(), ids) -
                                            group.ids.begin());
    const TensorType& type = from_.type(ids);
    ValueId part = by_all.inverse;
    if (group.ids.size() > 1) {
      part = g.add_node("Slice", {part},
                        {{"starts", Ints{by_all.first[k]}},
                         {"sizes", Ints{type.elements()}},
                         {"steps", Ints{1}}});
    }
    return g.reshape(part, type.shape);
  }

  const Graph& from_;
  const RankShares& ranks_;
  std::vector<LookupGroup> groups_;
  std::map<std::int32_t, std::size_t> group_of_;      // by lookup
  std::map<std::int32_t, std::int64_t> rows_of_sum_;  // rows of the whole table, by lookup
  ShardBags bags_;
  std::map<std::size_t, ValueId> rows_;  // by group
  std::map<Key, Asked> asked_;
};

}  // namespace

Graph shard_tables(const OperatorSet& operators, const Graph& forward, const Shardings& shards,
                   const RankShares& ranks) {
  if (!ranks.several() || shards.empty()) return forward;
  Graph from = remove_dead(forward, operators);
  std::vector<ShardedTable> tables = sharded_tables(from, shards, ranks);
  if (tables.empty()) return forward;
  set_sums_apart(from, ranks, tables);
  for (const ShardedTable& table : tables) {
    State& state = from.states[table.state];
    keep_part(state, kind_of(table), ranks.rank, ranks.ranks, std::max(table.owner, 0));
    from.value(table.initial).type = state.start.type();  // lookups of the whole are replaced
  }
  ShardTables sharded(from, ranks);
  for (const ShardedTable& table : tables) sharded.add(table);
  return rewrite(from, operators,
                 [&](GraphRewrite& to, NodeId id) { return sharded.replace(to, id); });
}

}  // namespace tandem
