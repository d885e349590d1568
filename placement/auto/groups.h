// What automatic placement moves as one: modules, single operators where there are few, and
// parameters that several of them read.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "placement/match.h"

namespace tandem {

/// A part of the operators' paths: "blocks", "blocks.0", "blocks.0.fc1.Gemm".
struct AutoScope {
  std::string name;  // the last part
  int parent = -1;
  std::vector<int> children;  // in the graph's order
  bool is_operator = false;   // an operator has this very path
  int group = -1;             // the group that it is in; -1: its children are in several
};

struct AutoGroup {
  std::vector<int> scopes;
  std::string parameter;  // instead of scopes: selector of a parameter that several groups read
  int operators = 0;      // nodes of the graph
  std::size_t bytes = 0;  // all its parameters
  double operations = 0;  // a micro-batch: arithmetic, or bytes where those count for more
  bool looks_up = false;  // it looks up rows of a table
  bool has_parameters = false;
};

struct AutoGroups {
  std::vector<AutoScope> scopes;  // [0] is the root, parents first
  std::vector<AutoGroup> groups;  // in the graph's order; parameters last
};

/// Splits the heaviest scopes first, into `most` groups or a few more; operators that look up
/// tables are groups of their own. `added`: parts outside the graph, such as "loss.total".
AutoGroups make_auto_groups(const Graph& forward, const std::vector<AddedPart>& added,
                            std::size_t most);

/// The selector of everything in a scope: "**", "blocks.0.**", or an operator's path.
std::string selector_of(const AutoGroups& groups, int scope);

}  // namespace tandem
