// `policy names`: what a rule may name, with sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/graph/graph.h"
#include "placement/counts.h"

namespace tandem {

enum class NameKind : std::uint8_t { in_model, added, parameter, buffer };  // operators first

struct NameRow {
  std::string path;  // as selectors see it
  std::string op;    // operator type; "parameter" or "buffer"
  Shape shape;       // the parameter's, or that of the operator's first result
  DType dtype = DType::float32;
  std::uint64_t bytes = 0;  // all results together, or the parameter
  std::string raw_name;     // in the ONNX file; "" = none
  NameKind kind = NameKind::in_model;
};

enum class NameOrder : std::uint8_t { graph, path, op, bytes };  // bytes: largest first

struct NameOptions {
  std::string at;  // only what this selector covers; "" = all. Throws Error{usage} if unreadable
  NameOrder order = NameOrder::graph;
  bool operators = true, parameters = true;
  std::unordered_map<std::string, std::string> raw_names;  // operators' names, by path
};

/// Operators, one a path, then parameters and buffers.
std::vector<NameRow> policy_names(const Graph& forward, const NameOptions& options = {});
ItemCounts counts_of(const std::vector<NameRow>& rows);
/// Aligned columns with a head line, and how many there are.
std::string names_text(const std::vector<NameRow>& rows);

}  // namespace tandem
