// `policy explain`: why operators and parameters are where they are, and where the nodes are that
// come from them.
#pragma once

#include <list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "include/tandem/policy.h"
#include "placement/report/placement_report.h"
#include "placement/report/planned_step.h"

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
  std::string why_not;  // why it is not where it was requested; "" where it is
  int rule = -1;        // the rule that decided it; -1: none
  double seconds = 0;   // its kernel's time in one micro-batch by the cost model
};

/// What the nodes and copies take of a step, by the cost model.
struct ExplainedCost {
  double forward = 0, backward = 0, update = 0;  // seconds of kernels
  double step = 0;                               // seconds of the whole step
  std::int64_t copies = 0;                       // copies of its inputs and outputs but scalars
  std::size_t bytes = 0;                         // what these copies move
  double exposed = 0;                            // seconds that queues wait for them

  double kernels() const { return forward + backward + update; }
};

/// Operators or parameters for which one rule, or none, decides an attribute alike.
struct ExplainedGroup {
  int rule = -1;  // -1: none
  std::string attribute, value;
  std::optional<FallBack> fallen;  // the strongest rule that did not get its way
  ItemCounts counts;
  std::vector<std::string> at;     // few selectors that cover all `paths`
  std::vector<std::string> paths;  // operators or parameters, in the graph's order
};

/// An operator or a parameter of a resolved policy, which outlives this; or what a selector covers.
struct Explained {
  std::string path, kind;
  ItemCounts counts;                   // for a selector: what it covers
  std::vector<ExplainedGroup> groups;  // for a selector: by the rules that decide; else empty
  std::list<Reason> reasons;           // for attributes that only a program decides
  std::vector<ExplainedAttribute> attributes;
  std::vector<ExplainedNode> nodes;
  std::optional<ExplainedCost> cost;               // in a planned step
  const ParameterAttributes* parameter = nullptr;  // null where it is none
  std::vector<std::string> readers;                // operators whose nodes belong to it
  std::set<std::string> parameters;                // those whose updates belong to it
};

/// By path or parameter name, without nodes. Throws Error{usage} where nothing has this name.
Explained explain(const ResolvedPolicy& resolved, const std::string& name);
/// As above, and also for the path of a module, or a selector. `items` are those of `resolved`.
Explained explain(const ResolvedPolicy& resolved, const PolicyItems& items, const Graph& forward,
                  const std::string& name);
/// Adds its nodes in a program. `phase`: only "forward", "backward" or "update", or "" for all.
void add_nodes(const ResolvedPolicy& resolved, const Lowered& lowered, const std::string& phase,
               Explained& to);
/// Adds what the nodes cost in a step; they are those of its last micro-batch.
void add_costs(const PlannedStep& step, Explained& to);
/// As the public library has it, with its text and JSON.
api::Explanation explanation_of(const Policy& policy, const ResolvedPolicy& resolved,
                                const Explained& explained);

}  // namespace tandem
