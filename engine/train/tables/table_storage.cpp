#include "engine/train/tables/table_storage.h"

#include "engine/config/keys/config_value.h"
#include "engine/graph/error.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/text.h"
#include "engine/operators/operator.h"
#include "engine/operators/tables/table_nodes.h"

namespace tandem {
namespace {

// "" where the node may read the table at this input.
std::string wrong_reader(const Graph& graph, const Node& node, std::size_t input) {
  const std::string who = node.path + " (" + node.op->name + ")";
  if (!is_row_lookup(node) || input != 0) return who;
  return graph.is_constant(node.inputs[1]) ? who + ", with constant ids" : "";
}

constexpr const char* what_reads =
    "only lookups (Gather along axis 0, sums of such rows) may read a split table";

}  // namespace

void refuse_split_table(const SplitTable& table, const std::string& path, std::string message,
                        std::string expected, std::string got, std::string fix) {
  throw Error(ErrorKind::usage, at(table.rule->where, path, std::move(message), std::move(expected),
                                   std::move(got), std::move(fix)));
}

std::vector<SplitTable> split_tables(const ParametersConfig& config, const Graph& graph) {
  if (config.storage.empty()) return {};
  const ParameterNames names(graph);
  std::vector<Diagnostic> problems;
  std::vector<Selector> selectors;
  for (const StorageRule& rule : config.storage) {
    const Selector& selector = selectors.emplace_back(rule.at);
    bool any = false;
    for (const State& state : graph.states)
      any = any || (is_parameter(state) && names.covers(selector, state));
    if (any) continue;
    problems.push_back(at(rule.where, "", "\"" + rule.at + "\" matches no parameter", "", "",
                          names.no_match_fix(rule.at, graph)));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  std::vector<SplitTable> tables;
  for (const State& state : graph.states) {
    if (!is_parameter(state)) continue;
    const StorageRule* last = nullptr;
    for (std::size_t i = 0; i < selectors.size(); ++i) {
      if (names.covers(selectors[i], state)) last = &config.storage[i];
    }
    if (last != nullptr && last->kind == StorageKind::split_bfloat16)
      tables.push_back({state.name, last});
  }
  return tables;
}

const SplitTable* find_split_table(const std::vector<SplitTable>& tables, const State& parameter) {
  const std::string& name = parameter.source<CachedRows>();
  for (const SplitTable& table : tables) {
    if (table.name == name) return &table;
  }
  return nullptr;
}

void check_split_tables(const std::vector<SplitTable>& tables, const Graph& graph) {
  if (tables.empty()) return;
  const auto readers = readers_of(graph);
  for (const SplitTable& table : tables) {
    const State* state = graph.find_state(table.name);
    if (state == nullptr) continue;  // unused, and gone
    const auto refuse = [&](std::string message, std::string expected, std::string got) {
      refuse_split_table(table, state->path, std::move(message), std::move(expected),
                         std::move(got), "let the selector leave it out");
    };
    const TensorType& type = graph.type(state->initial);
    if (type.dtype != DType::float32)
      refuse("split_bfloat16 is a way to keep float32", "float32",
             std::string(name_of(type.dtype)));
    if (type.rank() == 0) refuse("a scalar is no table", "rows", to_string(type));
    if (readers[static_cast<std::size_t>(state->initial.index)].empty())
      refuse("no lookup reads this parameter", "a table that is looked up by ids", "nothing");
    for (const NodeId reader : readers[static_cast<std::size_t>(state->initial.index)]) {
      const Node& node = graph.node(reader);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (!(node.inputs[i] == state->initial)) continue;
        const std::string wrong = wrong_reader(graph, node, i);
        if (!wrong.empty()) refuse(what_reads, "only lookups by ids", wrong);
      }
    }
    for (const NamedValue& output : graph.outputs) {
      if (output.value == state->initial)
        refuse(what_reads, "only lookups by ids", "the output '" + output.name + "'");
    }
  }
}

}  // namespace tandem
