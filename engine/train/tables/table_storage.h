// How tables are kept between steps: the rules of [parameters] storage, resolved.
#pragma once

#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/graph/graph.h"

namespace tandem {

/// A parameter of its own: a cache of a table is kept as the table is.
inline bool is_parameter(const State& state) {
  return state.kind == StateKind::parameter && state.derived.is_saved();
}

/// A parameter that is kept as split_bfloat16, and the rule that says so.
struct SplitTable {
  std::string name;
  const StorageRule* rule = nullptr;
};

/// In the graph's order. Throws Error{usage} with every rule that covers no parameter.
std::vector<SplitTable> split_tables(const ParametersConfig& config, const Graph& graph);

/// Throws Error{usage} where one of them is not a float32 table that only lookups by fed ids read;
/// `graph` is past the forward passes, with its losses.
void check_split_tables(const std::vector<SplitTable>& tables, const Graph& graph);

/// The split table of a parameter, or of the table of which it is a cache; null where there is
/// none.
const SplitTable* find_split_table(const std::vector<SplitTable>& tables, const State& parameter);

/// An error at a storage rule.
[[noreturn]] void refuse_split_table(const SplitTable& table, const std::string& path,
                                     std::string message, std::string expected, std::string got,
                                     std::string fix);

}  // namespace tandem
