#include "importer/grown_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/graph/host_memory.h"
#include "engine/graph/parameter_names.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "engine/operators/tables/table_nodes.h"
#include "importer/file/tensor_data.h"
#include "importer/paths.h"

namespace tandem::importer {
namespace {

constexpr const char* what_reads =
    "only lookups (Gather along axis 0) may read a table whose rows [parameters] shape sets";

// The modules that look a table up, by its name: what ParameterNames has once nodes are lowered.
std::multimap<std::string, std::string> names_by_lookups(const OnnxFile::Content& file,
                                                         const std::vector<bool>& needed) {
  const ModulePaths modules(*file.model);
  const onnx::GraphProto& graph = file.model->graph();
  std::multimap<std::string, std::string> found;
  for (int n = 0; n < graph.node_size(); ++n) {
    const onnx::NodeProto& node = graph.node(n);
    if (!needed[static_cast<std::size_t>(n)] || node.op_type() != "Gather" ||
        node.input_size() == 0)
      continue;
    found.emplace(node.input(0), module_of_path(modules.operator_path(node)));
  }
  return found;
}

// Rules by the parameter that they cover; the last one counts.
std::map<std::string, const RowsRule*> covered(
    const OnnxFile::Content& file, const std::unordered_map<std::string, Role>& roles,
    const std::unordered_map<std::string, std::string>& shared, const std::vector<RowsRule>& rules,
    const std::vector<bool>& needed, std::vector<Diagnostic>& problems) {
  std::map<std::string, const RowsRule*> result;
  const auto lookups = names_by_lookups(file, needed);
  for (const RowsRule& rule : rules) {
    const Selector selector(rule.at);
    std::vector<std::string> names;
    bool any = false;
    for (const onnx::TensorProto& tensor : file.model->graph().initializer()) {
      const auto role = roles.find(tensor.name());
      if (role == roles.end() || !role->second.is_state ||
          role->second.kind != StateKind::parameter)
        continue;
      const std::string path = parameter_path(tensor.name());
      names.push_back(path);
      names.push_back(tensor.name());
      const auto [begin, end] = lookups.equal_range(tensor.name());
      const bool is_looked_up = std::any_of(begin, end, [&](const auto& lookup) {
        names.push_back(lookup.second + ":weight");
        return path == tensor.name() &&
               (selector.matches(names.back()) || selector.matches(lookup.second));
      });
      if (!is_looked_up && !selector.covers_parameter(path, tensor.name())) continue;
      any = true;
      const auto first = shared.find(tensor.name());
      result[first == shared.end() ? tensor.name() : first->second] = &rule;
    }
    if (any) continue;
    problems.push_back(
        at(rule.where, "", "\"" + rule.at + "\" matches no parameter", "", "",
           did_you_mean(nearest_name(rule.at, names), "`tandem inspect MODEL` lists them")));
  }
  return result;
}

// "Gather of axis 1"; "" where a node of the file may read the table at this input. Functions and
// copies are looked into when they have been lowered.
std::string wrong_reader(const onnx::NodeProto& node, int input) {
  if (!domain_of(node.domain()).empty() || node.op_type() == "Identity") return "";
  if (node.op_type() != "Gather") return node.op_type();
  if (input != 0) return "Gather, as its indices";
  const onnx::AttributeProto* axis = find_attribute(node, "axis");
  return axis == nullptr || axis->i() == 0 ? "" : fmt::format("Gather along axis {}", axis->i());
}

}  // namespace

GrownTables grown_tables(const OnnxFile::Content& file, const std::vector<bool>& needed,
                         const std::unordered_map<std::string, Role>& roles,
                         const std::unordered_map<std::string, std::string>& shared,
                         const std::vector<RowsRule>& rules) {
  GrownTables tables;
  if (rules.empty()) return tables;
  std::vector<Diagnostic> problems;
  const auto chosen = covered(file, roles, shared, rules, needed, problems);
  for (const auto& [name, rule] : chosen) {
    TensorType type = file.initializers.at(name).type();
    if (type.shape.empty()) {
      problems.push_back(at(rule->where, name, "a scalar has no rows"));
      continue;
    }
    if (rule->rows < 1) {
      problems.push_back(
          at(rule->where, name, "bad number of rows", "1 or more", std::to_string(rule->rows)));
      continue;
    }
    if (type.shape[0] == rule->rows) continue;
    type.shape[0] = rule->rows;
    const auto most = file.limits.tensor_bytes / static_cast<std::int64_t>(size_of(type.dtype));
    if (!checked_elements(type.shape, most)) {
      problems.push_back(at(rule->where, name, "the table would be too large",
                            fmt::format("at most {} bytes", file.limits.tensor_bytes),
                            to_string(type)));
      continue;
    }
    tables.emplace(name, std::move(type));
  }
  const ModulePaths modules(*file.model);
  const onnx::GraphProto& graph = file.model->graph();
  for (int n = 0; n < graph.node_size(); ++n) {
    if (!needed[static_cast<std::size_t>(n)]) continue;
    const onnx::NodeProto& node = graph.node(n);
    for (int i = 0; i < node.input_size(); ++i) {
      const auto first = shared.find(node.input(i));
      const std::string& name = first == shared.end() ? node.input(i) : first->second;
      if (tables.count(name) == 0) continue;
      const std::string wrong = wrong_reader(node, i);
      if (wrong.empty()) continue;
      std::string path = modules.operator_path(node);
      if (path.empty()) path = node.name().empty() ? node.op_type() : node.name();
      problems.push_back(
          at(chosen.at(name)->where, name, what_reads, "", fmt::format("{} ({})", path, wrong)));
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  return tables;
}

GrownTables resized_parameters(const OnnxFile::Content& file,
                               const std::map<std::string, Shape>& shapes) {
  GrownTables result;
  for (const auto& [name, shape] : shapes) {
    const auto found = file.initializers.find(name);
    if (found == file.initializers.end())
      refuse(file.path, name, "the model has no initializer of this name to give another shape");
    const TensorType& type = found->second.type();
    const auto most = file.limits.tensor_bytes / static_cast<std::int64_t>(size_of(type.dtype));
    if (shape.size() != type.shape.size() || !checked_elements(shape, most)) {
      refuse(
          file.path, name, "this initializer cannot have that shape",
          fmt::format("{} extents, at most {} bytes", type.shape.size(), file.limits.tensor_bytes),
          to_string(shape));
    }
    result.emplace(name, TensorType{type.dtype, shape});
  }
  return result;
}

HostTensor zeros_of(const std::string& name, const GrownTables& tables) {
  const TensorType& type = tables.at(name);
  try {
    return HostTensor(type);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::does_not_fit) throw;
    std::vector<std::pair<std::size_t, std::string>> larger;  // by size, the largest first
    for (const auto& [other, other_type] : tables) {
      if (other_type.bytes() >= type.bytes()) larger.emplace_back(other_type.bytes(), other);
    }
    std::sort(larger.rbegin(), larger.rend());
    constexpr std::size_t most_shown = 5;
    Diagnostic d{.message = "the host does not have enough memory for a table of this many rows",
                 .path = name};
    for (std::size_t i = 0; i < std::min(larger.size(), most_shown); ++i) {
      const auto& [bytes, other] = larger[i];
      d.got += fmt::format("{}{} {}, {} bytes", i == 0 ? "" : "; ", other,
                           to_string(tables.at(other)), bytes);
    }
    d.fix = "lower its rows in parameters.shape; optimizer states take as much again";
    fail_without_memory(std::move(d));
  }
}

void check_readers(const Graph& graph, const OnnxFile::Content& file, const GrownTables& tables) {
  if (tables.empty()) return;
  std::vector<Diagnostic> problems;
  const auto readers = readers_of(graph);
  for (const State& state : graph.states) {
    if (tables.count(state.name) == 0) continue;
    const auto wrong = [&](std::string who) {
      problems.push_back({.message = what_reads,
                          .file = file.path.string(),
                          .path = state.name,
                          .got = std::move(who)});
    };
    std::vector<ValueId> copies{state.initial};  // itself and what Identity makes of it
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const ValueId table = copies[i];
      for (const NodeId id : readers[static_cast<std::size_t>(table.index)]) {
        const Node& node = graph.node(id);
        const bool looks_up =
            is_row_lookup(node) && node.inputs[0] == table && node.inputs[1] != table;
        if (node.op->name == "Identity") {
          copies.push_back(node.outputs[0]);
        } else if (!looks_up) {
          wrong(fmt::format("{} ({})", node.path, node.op->name));
        }
      }
      for (const NamedValue& output : graph.outputs) {
        if (output.value == table) wrong("the output '" + output.name + "'");
      }
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

}  // namespace tandem::importer
