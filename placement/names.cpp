#include "placement/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/operators/operator.h"
#include "placement/match.h"
#include "placement/quantities.h"

namespace tandem {

std::vector<NameRow> policy_names(const Graph& forward, const NameOptions& options) {
  const PolicyItems items(forward, options.raw_names, {});
  PolicyRule rule;
  if (!options.at.empty()) rule.at = Selector(options.at);
  const RuleMatches matches = RuleMatcher(forward, items).match(rule);

  std::vector<NameRow> rows;
  for (const int i : matches.operators) {
    if (!options.operators) break;
    const PolicyItems::Operator& item = items.operators[i];
    const Node& last = forward.nodes[item.nodes.back()];  // the one that makes the result
    NameRow& row = rows.emplace_back();
    row.path = item.path;
    row.op = last.op->name;
    row.shape = forward.type(last.outputs[0]).shape;
    row.dtype = forward.type(last.outputs[0]).dtype;
    for (const int node : item.nodes) {
      for (const ValueId v : forward.nodes[node].outputs) row.bytes += forward.type(v).bytes();
    }
    row.raw_name = item.raw_name;
  }
  for (const int p : matches.parameters) {
    if (!options.parameters) break;
    const State& state = forward.states[items.parameters[p].state];
    const TensorType& type = forward.type(state.initial);
    const bool buffer = state.kind == StateKind::buffer;
    rows.push_back({state.path.empty() ? state.name : state.path, buffer ? "buffer" : "parameter",
                    type.shape, type.dtype, type.bytes(), state.name,
                    buffer ? NameKind::buffer : NameKind::parameter});
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const NameRow& a, const NameRow& b) {
    switch (options.order) {
      case NameOrder::graph:
        return false;
      case NameOrder::path:
        return a.path < b.path;
      case NameOrder::op:
        return a.op < b.op;
      case NameOrder::bytes:
        return a.bytes > b.bytes;
    }
    return false;
  });
  return rows;
}

ItemCounts counts_of(const std::vector<NameRow>& rows) {
  ItemCounts counts;
  for (const NameRow& row : rows) {
    switch (row.kind) {
      case NameKind::in_model:
      case NameKind::added:
        counts.add_operator(row.kind == NameKind::added);
        break;
      case NameKind::parameter:
        counts.add_parameter(StateKind::parameter);
        break;
      case NameKind::buffer:
        counts.add_parameter(StateKind::buffer);
        break;
    }
  }
  return counts;
}

std::string names_text(const std::vector<NameRow>& rows) {
  using Cells = std::array<std::string, 6>;
  std::vector<Cells> table{{"path", "op", "shape", "type", "size", "name in the file"}};
  for (const NameRow& row : rows) {
    table.push_back({row.path, row.op, to_string(row.shape), std::string(name_of(row.dtype)),
                     size_text(row.bytes), row.raw_name});
  }
  std::array<std::size_t, 6> widths{};
  for (const Cells& cells : table) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string text;
  for (const Cells& cells : table) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      line += i == 4 ? fmt::format("{:>{}}  ", cells[i], widths[i])
                     : fmt::format("{:{}}  ", cells[i], widths[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text + counts_text(counts_of(rows)) + "\n";
}

}  // namespace tandem
