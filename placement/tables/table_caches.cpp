#include "placement/tables/table_caches.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "engine/graph/parameter_names.h"
#include "engine/graph/shard_conversion.h"
#include "engine/operators/operator.h"
#include "engine/operators/update_kind.h"
#include "engine/train/programs/freeze_rules.h"
#include "engine/train/tables/fed_integers.h"
#include "engine/train/updates/add_update.h"
#include "placement/quantities.h"

namespace tandem {
namespace {

bool is_trained(const ParameterNames& names, const RunConfig& config, const State& table) {
  return table.trainable && !FreezeRules(config.parameters, names).always_freezes(table);
}

/// The options of the optimizer that updates the table, where it is trained.
const OptimizerOptions& options_of(const ParameterNames& names, const RunConfig& config,
                                   const State& table) {
  const OptimizerOptions* options = &config.optimizer.base;
  for (const OptimizerGroup& group : config.optimizer.groups) {
    if (names.covers(Selector(group.at), table)) options = &group.options;  // the last one wins
  }
  return *options;
}

/// Whether a value is the same in every micro-batch.
bool is_fixed(const Graph& micro_batch, ValueId value) {
  std::vector<bool> seen(micro_batch.values.size());
  std::vector<ValueId> todo{value};
  while (!todo.empty()) {
    const ValueId next = todo.back();
    todo.pop_back();
    if (!next || seen[static_cast<std::size_t>(next.index)]) continue;
    seen[static_cast<std::size_t>(next.index)] = true;
    const Value& of = micro_batch.value(next);
    if (of.kind == ValueKind::constant) continue;
    if (of.kind != ValueKind::computed) return false;
    const Node& node = micro_batch.node(of.producer);
    if (node.op->random) return false;
    todo.insert(todo.end(), node.inputs.begin(), node.inputs.end());
  }
  return true;
}

/// Why the run itself needs the table as a whole, or "".
std::string obstacle(const Graph& micro_batch, const RunConfig& config, const State& table) {
  for (const LossTerm& term : config.loss.terms) {
    for (const std::string& value : term.values) {
      if (micro_batch.find_output(value) == nullptr &&
          micro_batch.find_value(value) == table.initial)
        return "the loss term \"" + term.name + "\" reads all of it";
    }
  }
  const ParameterNames names(micro_batch);
  if (!is_trained(names, config, table)) return "";
  const UpdateChoice choice =
      choose_update(options_of(names, config, table), whole_elements(table));
  if (!find_update_kind(choice.op)->updates_rows())
    return "the optimizer's step is of the whole table; kinds that update rows: " + kinds_of_rows();
  // A lookup of fixed ids makes the table's gradient dense; one of only some of its ids would not.
  if (!choice.lazy) return "";
  for (const Lookup& lookup : lookups_of(micro_batch)) {
    if (lookup.parameter == table.name && is_fixed(micro_batch, lookup.ids))
      return "the model looks up constant ids in it, so that every row is updated in every step";
  }
  return "";
}

/// Tables that agree in this share their rows.
using Sharing = std::tuple<std::vector<std::int32_t>, std::int64_t, int>;  // ids, rows, device

Sharing sharing_of(const Graph& micro_batch, const State& table, int device) {
  std::vector<std::int32_t> ids;
  for (const Lookup& lookup : lookups_of(micro_batch)) {
    if (lookup.parameter == table.name) ids.push_back(lookup.ids.index);
  }
  std::sort(ids.begin(), ids.end());
  return {std::move(ids), table.start.shape()[0], device};
}

std::int64_t rows_of(const CacheSize& size, std::int64_t rows, std::int64_t row_bytes) {
  const std::int64_t fit =
      size.bytes > 0
          ? static_cast<std::int64_t>(
                size.bytes / static_cast<std::uint64_t>(std::max<std::int64_t>(row_bytes, 1)))
          : static_cast<std::int64_t>(size.part * static_cast<double>(rows));
  return std::min({fit, rows, std::int64_t{std::numeric_limits<std::int32_t>::max()}});
}

}  // namespace

std::int64_t trained_row_bytes(const Graph& micro_batch, const RunConfig& config,
                               const State& table) {
  const TensorType& type = table.start.type();
  Shape row = type.shape;
  row[0] = 1;
  std::int64_t bytes = element_count(row) * static_cast<std::int64_t>(size_of(type.dtype));
  const ParameterNames names(micro_batch);
  if (!is_trained(names, config, table)) return bytes;
  const UpdateChoice choice =
      choose_update(options_of(names, config, table), whole_elements(table));
  const UpdateKind& kind = *find_update_kind(choice.op);
  constexpr std::int64_t float_bytes = 4;
  for (std::size_t k = 0; k < kind.states.size(); ++k) {
    if (kind.keeps_state(k, choice.settings, row))
      bytes += float_bytes * element_count(kind.state_shape(k, row));
  }
  return bytes;
}

std::vector<CachedTable> cached_tables(const ResolvedPolicy& resolved) {
  std::vector<CachedTable> tables;
  for (const ParameterAttributes& parameter : resolved.parameters) {
    if (parameter.cached.rows) tables.push_back({parameter.name, parameter.cached.rows});
  }
  return tables;
}

const std::optional<HotRows>& TableCaches::hot_rows(const Graph& micro_batch,
                                                    const Evaluator& evaluate,
                                                    const DataSource& source,
                                                    const std::string& parameter,
                                                    std::int64_t count) {
  const std::pair key{parameter, count};
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  auto found = find_hot_rows(micro_batch, source, evaluate, parameter, count);
  return known_.emplace(key, std::move(found)).first->second;
}

std::vector<TableCache> TableCaches::choose(const Graph& micro_batch, const RunConfig& config,
                                            const Evaluator& evaluate, const Source& source,
                                            const std::vector<CacheRequest>& constraints) {
  struct Shared {
    std::string first;  // parameter
    std::int64_t rows = 0;
    std::vector<std::size_t> constraints;
  };
  std::map<Sharing, Shared> groups;
  std::vector<TableCache> caches(constraints.size());
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    const State& table = *micro_batch.find_state(constraints[i].parameter);
    caches[i].off = obstacle(micro_batch, config, table);
    const std::int64_t row_bytes = trained_row_bytes(micro_batch, config, table);
    const std::int64_t rows = rows_of(constraints[i].size, table.start.shape()[0], row_bytes);
    if (caches[i].off.empty() && rows < 1) {
      caches[i].off = cache_text(constraints[i].size) + " holds no row: one takes " +
                      size_text(static_cast<std::uint64_t>(row_bytes)) +
                      " with its optimizer states";
    }
    if (!caches[i].off.empty()) continue;
    Shared& group = groups[sharing_of(micro_batch, table, constraints[i].device)];
    if (group.constraints.empty()) group.first = table.name;
    group.rows = group.constraints.empty() ? rows : std::min(group.rows, rows);
    group.constraints.push_back(i);
  }
  for (const auto& [sharing, group] : groups) {
    std::string off;
    const std::optional<HotRows>* hot = nullptr;
    try {
      const std::shared_ptr<const DataSource> data = source();
      if (data) hot = &hot_rows(micro_batch, evaluate, *data, group.first, group.rows);
      off = !data ? "no data shows which of its rows are looked up"
                  : "which rows are looked up depends on more than the data's fields";
    } catch (const std::exception&) {  // reported where the run itself reads the data
      off = "the data cannot be read";
    }
    for (const std::size_t i : group.constraints) {
      if (hot == nullptr || !*hot) {
        caches[i].off = off;
        continue;
      }
      caches[i].rows = (*hot)->rows;
      caches[i].hit_rate = (*hot)->hit_rate;
      caches[i].cold_rows = (*hot)->cold_rows;
      caches[i].bytes =
          group.rows *
          trained_row_bytes(micro_batch, config, *micro_batch.find_state(constraints[i].parameter));
    }
  }
  return caches;
}

}  // namespace tandem
