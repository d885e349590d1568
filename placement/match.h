// Which operators and parameters of a graph a rule means.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/graph/parameter_names.h"
#include "placement/counts.h"
#include "placement/policy.h"

namespace tandem {

/// Something outside the forward graph that rules may name: "loss.ce", "data.image.Cast".
struct AddedPart {
  std::string path;
  std::string op;  // "" = none
};

/// What rules see of the graph. The nodes of one path are one operator.
struct PolicyItems {
  struct Operator {
    std::string path;
    std::string raw_name;           // in the ONNX file; "" = unknown
    std::vector<std::string> ops;   // types of its nodes, and the type that the path ends with
    std::vector<int> nodes;         // indices in the graph; none for added parts
    std::vector<int> parameters;    // those that it reads, through views too
    std::vector<int> view_readers;  // for a view of a parameter: the operators that read it
  };
  struct Parameter {
    int state = -1;            // index in the graph: a parameter or a buffer
    std::vector<int> readers;  // operators that read it
    std::vector<int> users;    // its readers, with views of it replaced by the views' readers
    std::size_t bytes = 0;
  };
  std::vector<Operator> operators;  // in the graph's order, then the added parts
  std::vector<Parameter> parameters;
  std::vector<int> operator_of_node;
  ParameterNames names;  // further names of parameters, from their readers

  PolicyItems(const Graph& graph, const std::unordered_map<std::string, std::string>& raw_names,
              const std::vector<AddedPart>& added);
};

struct RuleMatches {
  std::vector<int> operators;
  std::vector<int> parameters;
  std::vector<int> updates;  // parameters whose update "optimizer.NAME" the selector names
  bool any() const { return !operators.empty() || !parameters.empty() || !updates.empty(); }
};

/// How much there is in all, or how much a rule matches; a parameter counts where the rule only
/// names its update.
ItemCounts counts_of(const Graph& graph, const PolicyItems& items);
ItemCounts counts_of(const Graph& graph, const PolicyItems& items, const RuleMatches& matches);

class RuleMatcher {
 public:
  RuleMatcher(const Graph& graph, const PolicyItems& items) : graph_(graph), items_(items) {}

  RuleMatches match(const PolicyRule& rule) const;
  /// Why a rule matches nothing, at the selector or filter that is to blame, with the nearest name.
  Diagnostic explain_nothing(const PolicyRule& rule) const;

 private:
  enum Filter : unsigned { op_filter = 1, min_filter = 2, after_filter = 4, before_filter = 8 };
  struct Cones;

  RuleMatches match(const PolicyRule& rule, unsigned filters) const;
  bool passes(const PolicyRule& rule, int item, unsigned filters, const Cones& cones) const;
  bool names(const Selector& selector, const PolicyItems::Operator& item) const;
  std::vector<char> cone(const Selector& selector, bool forward, bool* any = nullptr) const;

  const Graph& graph_;
  const PolicyItems& items_;
};

/// A selector near `wanted` that matches one of `names`, or "".
std::string nearest_selector(const std::string& wanted, const std::vector<std::string>& names);

}  // namespace tandem
