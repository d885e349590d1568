#include "engine/train/divergence/id_remedies.h"

#include <algorithm>
#include <map>

#include "engine/config/keys/config_value.h"
#include "engine/config/rows_line.h"
#include "engine/operators/tables/table_nodes.h"

namespace tandem {

std::string selector_of(const Graph& graph, const std::string& table) {
  const State* const state = graph.find_state(table);
  return state == nullptr || state->path.empty() ? table : state->path;
}

std::string line_for_ids(const Graph& graph, const std::vector<std::string>& tables,
                         double greatest, std::int64_t rows) {
  constexpr double most_times = 100;
  const auto own = static_cast<double>(std::max<std::int64_t>(rows, 1));
  if (!(greatest >= own) || greatest >= most_times * own) return "";
  std::map<std::string, std::int64_t> wanted;
  for (const std::string& table : tables) {
    const State* const state = graph.find_state(table);
    if (state == nullptr || !only_lookups_read(graph, state->initial)) return "";
    wanted[selector_of(graph, table)] = static_cast<std::int64_t>(greatest) + 1;
  }
  return rows_line(wanted);
}

std::string remedy_of_ids(const RunConfig& config, const std::string& field,
                          const std::string& line, bool are_large, bool may_be_zero) {
  const bool is_table = config.data && config.data->table() != nullptr;
  const std::string key = "data.fields." + toml_key(field);
  std::string text;
  if (!line.empty())
    text = line + " gives each id a row";
  else if (are_large && is_table)
    text = "as = [ \"vocabulary\" ] in " + key + " numbers the values of a column from 1 on";
  if (may_be_zero)
    text += (text.empty() ? "" : "; ") + key + ".out_of_range = \"zero\" looks up zeros instead";
  return text.empty() ? "ids have to be rows of the table, which count from 0" : text;
}

}  // namespace tandem
