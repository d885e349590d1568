#include "placement/auto/groups.h"

#include <algorithm>
#include <numeric>

#include "engine/operators/operator.h"
#include "placement/selectors/siblings.h"

namespace tandem {
namespace {

// How many operations take as long as one byte: a rough machine, for ranking only.
constexpr double operations_per_byte = 5;

struct Weight {
  int operators = 0;
  double operations = 0;
  bool looks_up = false, only_looks_up = true;
};

class Grouping {
 public:
  Grouping(const Graph& graph, const std::vector<AddedPart>& added)
      : graph_(graph), items_(graph, {}, added) {
    result_.scopes.emplace_back();
    for (const PolicyItems::Operator& item : items_.operators) add_path(item.path);
    weigh();
  }

  AutoGroups run(std::size_t most) {
    std::vector<int> scopes = result_.scopes[0].children;
    split_tables(scopes);
    split_heaviest(scopes, most);
    make_groups(scopes, most);
    count_parameters();
    return std::move(result_);
  }

 private:
  void add_path(const std::string& path) {
    int scope = 0;
    for (std::size_t start = 0; start <= path.size();) {
      const std::size_t end = std::min(path.find('.', start), path.size());
      scope = child(scope, path.substr(start, end - start));
      start = end + 1;
    }
    result_.scopes[scope].is_operator = true;
    scope_of_.push_back(scope);
  }

  int child(int of, const std::string& name) {
    for (const int known : result_.scopes[of].children) {
      if (result_.scopes[known].name == name) return known;
    }
    const int made = static_cast<int>(result_.scopes.size());
    AutoScope scope;
    scope.name = name;
    scope.parent = of;
    result_.scopes.push_back(std::move(scope));
    result_.scopes[of].children.push_back(made);
    return made;
  }

  void weigh() {
    weights_.resize(result_.scopes.size());
    for (std::size_t i = 0; i < items_.operators.size(); ++i) {
      const PolicyItems::Operator& item = items_.operators[i];
      Weight own;
      for (const int n : item.nodes) {
        const Node& node = graph_.nodes[n];
        const Cost cost = cost_of(graph_, node);
        ++own.operators;
        own.operations += std::max(cost.flops, operations_per_byte * cost.bytes);
        own.looks_up |= node.op->role == Role::lookup && !item.parameters.empty();
      }
      for (int scope = scope_of_[i]; scope >= 0; scope = result_.scopes[scope].parent) {
        Weight& weight = weights_[scope];
        weight.operators += own.operators;
        weight.operations += own.operations;
        weight.looks_up |= own.looks_up;
        weight.only_looks_up &= own.looks_up;
      }
    }
  }

  bool can_split(int scope) const {
    const AutoScope& of = result_.scopes[scope];
    if (of.is_operator || of.children.empty()) return false;
    return of.children.size() > 1 || can_split(of.children[0]);
  }

  void replace_by_children(std::vector<int>& scopes, std::size_t at) const {
    const std::vector<int>& children = result_.scopes[scopes[at]].children;
    const auto place = scopes.erase(scopes.begin() + static_cast<std::ptrdiff_t>(at));
    scopes.insert(place, children.begin(), children.end());
  }

  void split_tables(std::vector<int>& scopes) const {
    for (std::size_t i = 0; i < scopes.size();) {
      const Weight& weight = weights_[scopes[i]];
      if (weight.looks_up && !weight.only_looks_up && can_split(scopes[i])) {
        replace_by_children(scopes, i);
      } else {
        ++i;
      }
    }
  }

  void split_heaviest(std::vector<int>& scopes, std::size_t most) const {
    std::vector<std::size_t> order(scopes.size());
    for (bool split = true; split;) {
      split = false;
      order.resize(scopes.size());
      std::iota(order.begin(), order.end(), std::size_t{0});
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return weights_[scopes[a]].operations > weights_[scopes[b]].operations;
      });
      for (const std::size_t at : order) {
        const std::size_t children = result_.scopes[scopes[at]].children.size();
        if (!can_split(scopes[at]) || scopes.size() - 1 + children > most) continue;
        replace_by_children(scopes, at);
        split = true;
        break;
      }
    }
  }

  // Makes one group for each scope; neighbours share one where there are too many.
  void make_groups(const std::vector<int>& scopes, std::size_t most) {
    double total = 0;
    for (const int scope : scopes) total += weights_[scope].operations;
    const double part = scopes.size() <= most ? 0 : total / static_cast<double>(most);
    double filled = 0;
    int parent = -1;
    for (const int scope : scopes) {
      const Weight& weight = weights_[scope];
      const bool joins = !result_.groups.empty() && filled + weight.operations <= part &&
                         result_.scopes[scope].parent == parent && !weight.looks_up &&
                         !result_.groups.back().looks_up;
      if (!joins) {
        result_.groups.emplace_back();
        filled = 0;
      }
      parent = result_.scopes[scope].parent;
      filled += weight.operations;
      AutoGroup& group = result_.groups.back();
      group.scopes.push_back(scope);
      group.operators += weight.operators;
      group.operations += weight.operations;
      group.looks_up |= weight.looks_up;
      mark(scope, static_cast<int>(result_.groups.size()) - 1);
    }
  }

  void mark(int scope, int group) {
    result_.scopes[scope].group = group;
    for (const int inner : result_.scopes[scope].children) mark(inner, group);
  }

  void count_parameters() {
    for (const PolicyItems::Parameter& parameter : items_.parameters) {
      std::vector<int> readers;
      for (const int user : parameter.users) {
        const int group = result_.scopes[scope_of_[user]].group;
        if (std::find(readers.begin(), readers.end(), group) == readers.end())
          readers.push_back(group);
      }
      if (readers.empty()) continue;
      const State& state = graph_.states[parameter.state];
      int group = readers[0];
      if (readers.size() > 1) {
        group = static_cast<int>(result_.groups.size());
        AutoGroup& shared = result_.groups.emplace_back();
        shared.parameter = selector_part(state.path.empty() ? state.name : state.path);
      }
      result_.groups[group].bytes += parameter.bytes;
      result_.groups[group].has_parameters |= state.kind == StateKind::parameter;
    }
  }

  const Graph& graph_;
  const PolicyItems items_;
  AutoGroups result_;
  std::vector<int> scope_of_;    // per operator of the items
  std::vector<Weight> weights_;  // per scope
};

}  // namespace

AutoGroups make_auto_groups(const Graph& forward, const std::vector<AddedPart>& added,
                            std::size_t most) {
  return Grouping(forward, added).run(most);
}

std::string selector_of(const AutoGroups& groups, int scope) {
  std::string path;
  const bool whole = !groups.scopes[scope].children.empty();
  for (int at = scope; at > 0; at = groups.scopes[at].parent) {
    path = selector_part(groups.scopes[at].name) + (path.empty() ? "" : "." + path);
  }
  if (path.empty()) return "**";
  return whole ? path + ".**" : path;
}

}  // namespace tandem
