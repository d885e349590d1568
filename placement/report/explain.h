// `policy explain`: why an operator or a parameter is where it is, and where the nodes are that
// come from it.
#pragma once

#include <list>
#include <set>
#include <string>
#include <vector>

#include "placement/report/placement_report.h"

namespace tandem {

struct ExplainedAttribute {
  std::string name, value;
  const Reason* reason;
};

/// A node that comes from what is explained.
struct ExplainedNode {
  PlacedRow row;
  int requested = 0;
  std::string reason;
};

/// An operator or a parameter of a resolved policy, which outlives this.
struct Explained {
  std::string path, kind;
  std::list<Reason> reasons;  // of attributes that are found here
  std::vector<ExplainedAttribute> attributes;
  std::vector<ExplainedNode> nodes;
  const ParameterAttributes* parameter = nullptr;  // where it is one
  std::vector<std::string> readers;                // operators whose nodes belong to it
  std::set<std::string> parameters;                // whose updates belong to it
};

/// By path or parameter name, without nodes. Throws Error{usage} where nothing has this name.
Explained explain(const ResolvedPolicy& resolved, const std::string& name);
/// What became of it in a program. `phase`: "forward", "backward", "update" alone, or "" for all.
void add_nodes(const ResolvedPolicy& resolved, const Lowered& lowered, const std::string& phase,
               Explained& to);
std::string explain_text(const Policy& policy, const ResolvedPolicy& resolved,
                         const Explained& explained);
std::string explain_json(const Policy& policy, const ResolvedPolicy& resolved,
                         const Explained& explained);

}  // namespace tandem
