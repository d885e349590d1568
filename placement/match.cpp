#include "placement/match.h"

#include <algorithm>
#include <set>

#include "engine/graph/text.h"
#include "engine/operators/operator.h"
#include "placement/quantities.h"

namespace tandem {
namespace {

// "Gemm" of "blocks.0.fc1.Gemm#2".
std::string op_in_path(const std::string& path) {
  std::string last = path.substr(path.rfind('.') + 1);
  return last.substr(0, last.find('#'));
}

void add_once(std::vector<int>& to, int item) {
  if (std::find(to.begin(), to.end(), item) == to.end()) to.push_back(item);
}

}  // namespace

PolicyItems::PolicyItems(const Graph& graph,
                         const std::unordered_map<std::string, std::string>& raw_names,
                         const std::vector<AddedPart>& added)
    : names(graph) {
  std::unordered_map<std::string, int> known;
  const auto add = [&](const std::string& path, const std::string& op) {
    const auto [place, fresh] = known.try_emplace(path, static_cast<int>(operators.size()));
    if (fresh) {
      Operator& item = operators.emplace_back();
      item.path = path;
      if (const auto raw = raw_names.find(path); raw != raw_names.end())
        item.raw_name = raw->second;
      item.ops.push_back(op_in_path(path));
    }
    Operator& item = operators[place->second];
    if (std::find(item.ops.begin(), item.ops.end(), op) == item.ops.end()) item.ops.push_back(op);
    return place->second;
  };
  for (const Node& node : graph.nodes) {
    const int item = add(node.path, node.op->name);
    operators[item].nodes.push_back(static_cast<int>(operator_of_node.size()));
    operator_of_node.push_back(item);
  }
  for (const AddedPart& part : added) add(part.path, part.op);

  // An operator that does nothing but view what it reads.
  const auto is_view = [&](int item) {
    const std::vector<int>& nodes = operators[item].nodes;
    return std::all_of(nodes.begin(), nodes.end(),
                       [&](int node) { return graph.nodes[node].op->view != nullptr; });
  };
  const auto readers = readers_of(graph);
  for (std::size_t s = 0; s < graph.states.size(); ++s) {
    const State& state = graph.states[s];
    if (state.kind != StateKind::parameter && state.kind != StateKind::buffer) continue;
    Parameter parameter{.state = static_cast<int>(s), .bytes = graph.type(state.initial).bytes()};
    const int index = static_cast<int>(parameters.size());
    // Follows views of the parameter to the operators that read them.
    const auto follow = [&](auto&& self, ValueId value, std::vector<int>& users) -> void {
      for (const NodeId reader : readers[value.index]) {
        const int item = operator_of_node[reader.index];
        const Node& node = graph.node(reader);
        add_once(operators[item].parameters, index);
        const bool view = is_view(item) && node.inputs[0] == value;
        std::vector<int> behind;
        if (view) {
          for (const ValueId output : node.outputs) self(self, output, behind);
        }
        if (behind.empty()) behind.push_back(item);
        for (const int user : behind) {
          add_once(users, user);
          if (user != item) add_once(operators[item].view_readers, user);
        }
      }
    };
    for (const NodeId reader : readers[state.initial.index]) {
      add_once(parameter.readers, operator_of_node[reader.index]);
    }
    follow(follow, state.initial, parameter.users);
    parameters.push_back(std::move(parameter));
  }
}

ItemCounts counts_of(const Graph& graph, const PolicyItems& items) {
  ItemCounts counts;
  for (const PolicyItems::Operator& item : items.operators) counts.add_operator(item.nodes.empty());
  for (const PolicyItems::Parameter& item : items.parameters)
    counts.add_parameter(graph.states[item.state].kind);
  return counts;
}

ItemCounts counts_of(const Graph& graph, const PolicyItems& items, const RuleMatches& matches) {
  ItemCounts counts;
  for (const int i : matches.operators) counts.add_operator(items.operators[i].nodes.empty());
  std::set<int> parameters(matches.parameters.begin(), matches.parameters.end());
  parameters.insert(matches.updates.begin(), matches.updates.end());
  for (const int p : parameters) counts.add_parameter(graph.states[items.parameters[p].state].kind);
  return counts;
}

struct RuleMatcher::Cones {
  std::vector<char> after, before;  // per operator; empty without such a filter
};

bool RuleMatcher::names(const Selector& selector, const PolicyItems::Operator& item) const {
  return selector.matches(item.path) ||
         (!item.raw_name.empty() &&
          (selector.text() == item.raw_name || selector.matches(item.raw_name)));
}

// Operators that depend on what the selector names (or on which that depends), without the named
// ones. The edges are values: readers depend on a value, and the value depends on its producer.
std::vector<char> RuleMatcher::cone(const Selector& selector, bool forward, bool* any) const {
  std::vector<char> marked(graph_.values.size());  // values on the way
  std::vector<char> inside(items_.operators.size());
  bool found = false;
  std::vector<char> is_seed(items_.operators.size());
  for (std::size_t i = 0; i < is_seed.size(); ++i) {
    is_seed[i] = !items_.operators[i].nodes.empty() && names(selector, items_.operators[i]);
    found = found || is_seed[i];
  }
  for (std::size_t v = 0; v < marked.size(); ++v) {
    const Value& value = graph_.values[v];
    if (!value.name.empty() && (selector.text() == value.name || selector.matches(value.name))) {
      marked[v] = 1;
      found = true;
    }
  }
  if (any) *any = found;
  const auto visit = [&](std::size_t n) {
    const Node& node = graph_.nodes[n];
    const int item = items_.operator_of_node[n];
    const std::vector<ValueId>& from = forward ? node.inputs : node.outputs;
    const std::vector<ValueId>& to = forward ? node.outputs : node.inputs;
    const bool reached =
        std::any_of(from.begin(), from.end(), [&](ValueId v) { return v && marked[v.index] != 0; });
    if (reached) inside[item] = 1;
    if (!reached && !is_seed[item]) return;
    for (const ValueId v : to) {
      if (v) marked[v.index] = 1;
    }
  };
  const std::size_t count = graph_.nodes.size();
  for (std::size_t n = 0; n < count; ++n) visit(forward ? n : count - 1 - n);
  for (std::size_t i = 0; i < is_seed.size(); ++i) {
    if (is_seed[i]) inside[i] = 0;
  }
  return inside;
}

bool RuleMatcher::passes(const PolicyRule& rule, int item, unsigned filters,
                         const Cones& cones) const {
  const PolicyItems::Operator& op = items_.operators[item];
  if ((filters & op_filter) && !rule.op.empty() &&
      std::find(op.ops.begin(), op.ops.end(), rule.op) == op.ops.end()) {
    return false;
  }
  if ((filters & after_filter) && rule.after && !cones.after[item]) return false;
  return !((filters & before_filter) && rule.before && !cones.before[item]);
}

RuleMatches RuleMatcher::match(const PolicyRule& rule, unsigned filters) const {
  Cones cones;
  if (rule.after && (filters & after_filter)) cones.after = cone(*rule.after, true);
  if (rule.before && (filters & before_filter)) cones.before = cone(*rule.before, false);
  const auto large = [&](int p) {
    return !(filters & min_filter) || !rule.min || items_.parameters[p].bytes >= *rule.min;
  };
  const auto means = [&](int item) {
    const PolicyItems::Operator& op = items_.operators[item];
    if (!names(rule.at, op) || !passes(rule, item, filters, cones)) return false;
    return !rule.min || !(filters & min_filter) ||
           std::any_of(op.parameters.begin(), op.parameters.end(), large);
  };

  RuleMatches matches;
  std::vector<char> meant(items_.operators.size());
  for (std::size_t i = 0; i < meant.size(); ++i) meant[i] = means(static_cast<int>(i));
  const auto all_meant = [&](const std::vector<int>& items) {
    return !items.empty() &&
           std::all_of(items.begin(), items.end(), [&](int i) { return meant[i]; });
  };
  for (std::size_t i = 0; i < meant.size(); ++i) {
    // A view of a parameter belongs to the operators that read it, as the parameter does.
    if (meant[i] || all_meant(items_.operators[i].view_readers)) {
      matches.operators.push_back(static_cast<int>(i));
    }
  }

  const bool of_optimizer = rule.at.text().starts_with("optimizer.");
  for (std::size_t p = 0; p < items_.parameters.size(); ++p) {
    const PolicyItems::Parameter& parameter = items_.parameters[p];
    const State& state = graph_.states[parameter.state];
    if (!large(static_cast<int>(p))) continue;
    const std::vector<std::string> further =
        of_optimizer ? items_.names.further_names(state) : std::vector<std::string>();
    if (of_optimizer && state.kind == StateKind::parameter &&
        (rule.at.matches("optimizer." + state.name) || rule.at.matches("optimizer." + state.path) ||
         std::any_of(further.begin(), further.end(), [&](const std::string& name) {
           return rule.at.matches("optimizer." + name);
         }))) {
      matches.updates.push_back(static_cast<int>(p));
    }
    // A selector without a role means operators: a parameter that several read belongs to all of
    // them.
    if (rule.at.covers_parameter(state.path, state.name) ||
        (rule.at.text().find(':') != std::string::npos && items_.names.covers(rule.at, state))) {
      const auto pass = [&](const std::vector<int>& readers) {
        return (!readers.empty() || (rule.op.empty() && !rule.after && !rule.before)) &&
               std::all_of(readers.begin(), readers.end(),
                           [&](int item) { return passes(rule, item, filters, cones); });
      };
      if (pass(parameter.readers) || pass(parameter.users)) {
        matches.parameters.push_back(static_cast<int>(p));
      }
    } else if (all_meant(parameter.readers) || all_meant(parameter.users)) {
      matches.parameters.push_back(static_cast<int>(p));
    }
  }
  return matches;
}

RuleMatches RuleMatcher::match(const PolicyRule& rule) const { return match(rule, ~0u); }

Diagnostic RuleMatcher::explain_nothing(const PolicyRule& rule) const {
  std::vector<std::string> paths;
  for (const PolicyItems::Operator& op : items_.operators) paths.push_back(op.path);
  std::vector<std::string> all = paths;
  for (const PolicyItems::Parameter& parameter : items_.parameters) {
    const State& state = graph_.states[parameter.state];
    all.push_back(state.path.empty() ? state.name : state.path);
    for (std::string& name : items_.names.further_names(state)) all.push_back(std::move(name));
  }
  constexpr const char* names_are_listed = "`tandem policy names` lists all";

  if (!match(rule, 0).any()) {
    Diagnostic d = at(rule.where_of("at"), rule.at.text(), "matches nothing in this model");
    const std::string near = nearest_selector(rule.at.text(), all);
    d.fix = did_you_mean(near, names_are_listed);
    if (!near.empty()) {
      PolicyRule other;
      other.at = Selector(near);
      d.fix += " (" + counts_text(counts_of(graph_, items_, match(other, 0))) + ")";
    }
    return d;
  }
  for (const bool forward : {true, false}) {
    const auto& selector = forward ? rule.after : rule.before;
    bool any = true;
    if (selector) cone(*selector, forward, &any);
    if (any) continue;
    std::vector<std::string> names = paths;
    for (const Value& value : graph_.values) names.push_back(value.name);
    const char* key = forward ? "after" : "before";
    Diagnostic d = at(rule.where_of(key), selector->text(),
                      std::string(key) + " names no operator or value of this model");
    d.fix = did_you_mean(nearest_selector(selector->text(), names), names_are_listed);
    return d;
  }
  if (!rule.op.empty() && !match(rule, op_filter).any()) {
    std::set<std::string> types, here;
    for (const PolicyItems::Operator& op : items_.operators) {
      types.insert(op.ops.begin(), op.ops.end());
      if (names(rule.at, op)) here.insert(op.ops.begin(), op.ops.end());
    }
    const bool elsewhere = types.contains(rule.op);
    Diagnostic d = at(rule.where_of("op"), rule.at.text(),
                      elsewhere ? "no operator of this type is covered by `at`"
                                : "this model has no operator of this type");
    d.got = "\"" + rule.op + "\"";
    const std::set<std::string>& offered = elsewhere && !here.empty() ? here : types;
    d.fix = did_you_mean(
        nearest_name(rule.op, std::vector<std::string>(offered.begin(), offered.end())));
    return d;
  }
  if (rule.min && !match(rule, min_filter).any()) {
    PolicyRule anything = rule;
    anything.min.reset();
    std::size_t largest = 0;
    for (const int p : match(anything, 0).parameters) {
      largest = std::max(largest, items_.parameters[p].bytes);
    }
    Diagnostic d = at(rule.where_of("min"), rule.at.text(), "no parameter is that large");
    d.expected = "at most " + size_text(largest);
    d.got = size_text(*rule.min);
    return d;
  }
  return at(rule.where, rule.at.text(), "matches nothing: its filters leave nothing together");
}

}  // namespace tandem
