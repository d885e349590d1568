#include "engine/train/divergence/origin_search.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "engine/operators/operator.h"

namespace tandem {
namespace {

/// What makes a result infinite or NaN, by operator.
struct Cause {
  std::string_view op, forward, gradient;
};
constexpr std::array causes{
    Cause{"Log", "its operand is 0 or below", "its operand is 0"},
    Cause{"Log1p", "its operand is -1 or below", "its operand is -1"},
    Cause{"Exp", "its operand is above 88 (709 in float64)", "its result overflows"},
    Cause{"Expm1", "its operand is above 88 (709 in float64)", "its result overflows"},
    Cause{"Sqrt", "its operand is below 0", "its operand is 0, where its slope is infinite"},
    Cause{"Div", "its divisor is 0", "its divisor is 0 or close to it"},
    Cause{"Reciprocal", "its operand is 0", "its operand is 0 or close to it"},
    Cause{"Pow", "its base is 0 or below, or its result overflows",
          "its base is 0, or its result overflows"},
    Cause{"Mul", "its result overflows", "its result overflows"},
    Cause{"Sub", "its result overflows", ""},
    Cause{"Add", "its result overflows", ""},
    Cause{"Softmax", "a whole row of it is masked by -inf", "a whole row of it is masked by -inf"},
    Cause{"MatMul", "its sums overflow", "its sums overflow"},
    Cause{"Conv", "its sums overflow", "its sums overflow"},
};

const Cause* find_cause(std::string_view op) {
  const auto* const found =
      std::find_if(causes.begin(), causes.end(), [&](const Cause& each) { return each.op == op; });
  return found == causes.end() ? nullptr : found;
}

class Search {
 public:
  Search(const Graph& graph, const MarkedValues& marked)
      : graph_(graph), marked_(marked), state_of_(graph.values.size(), nullptr) {
    for (const State& state : graph.states) {
      if (state.initial) state_of_[index(state.initial)] = &state;
    }
    find_made();
  }

  std::optional<NotFiniteOrigin> before(std::span<const ValueId> targets) {
    std::vector<bool> seen(graph_.values.size(), false);
    std::vector<ValueId> open;
    const auto visit = [&](ValueId value) {
      if (!seen[index(value)]) open.push_back(value);
      seen[index(value)] = true;
    };
    for (const ValueId target : targets) {
      if (target && marks(target).any()) visit(target);
    }
    ValueId first;  // the earliest in the graph
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      const std::vector<ValueId> reasons = reasons_of(value);
      for (const ValueId reason : reasons) visit(reason);
      if (reasons.empty() && (!first || place(value) < place(first))) first = value;
    }
    if (!first) return std::nullopt;
    return origin_at(first);
  }

 private:
  static std::size_t index(ValueId value) { return static_cast<std::size_t>(value.index); }
  Marks marks(ValueId value) const {
    const auto at = marked_.find(value.index);
    return at == marked_.end() ? Marks{} : at->second;
  }
  /// -1 for values that exist before the first node.
  std::int32_t place(ValueId value) const { return graph_.value(value).producer.index; }
  const Node* producer(ValueId value) const {
    return place(value) < 0 ? nullptr : &graph_.node(graph_.value(value).producer);
  }
  bool is_parameter(ValueId value) const {
    const State* const state = state_of_[index(value)];
    return state != nullptr && state->kind == StateKind::parameter && state->trainable;
  }

  /// Which values are not finite because of arithmetic or a parameter, and not only because of
  /// given values.
  void find_made() {
    made_.assign(graph_.values.size(), false);
    for (const State& state : graph_.states) {
      if (state.initial)
        made_[index(state.initial)] = is_parameter(state.initial) && marks(state.initial).any();
    }
    for (const Node& node : graph_.nodes) {
      bool reads_made = false, reads_any = false;
      for (const ValueId input : node.inputs) {
        if (!input) continue;
        reads_made = reads_made || made_[index(input)];
        reads_any = reads_any || marks(input).any();
      }
      for (const ValueId output : node.outputs) {
        if (output && marks(output).any())
          made_[index(output)] = reads_made || !reads_any || marks(output).nan;
      }
    }
  }

  /// The values that a node has read and that have made its result so; none where it began there.
  std::vector<ValueId> reasons_of(ValueId value) const {
    const Node* const node = producer(value);
    if (node == nullptr) return {};
    const auto inputs_with = [&](const auto& is_one) {
      std::vector<ValueId> found;
      for (const ValueId input : node->inputs) {
        if (input && is_one(input)) found.push_back(input);
      }
      return found;
    };
    const auto is_nan = [&](ValueId input) { return marks(input).nan && made_[index(input)]; };
    const auto is_made = [&](ValueId input) { return marks(input).any() && made_[index(input)]; };
    // An infinity that was passed on is followed to where it was written or chosen.
    const auto is_passed_on = [&](ValueId input) {
      return marks(input).infinite && producer(input) != nullptr;
    };
    const bool has_nan = marks(value).nan;
    std::vector<ValueId> found;
    if (has_nan) found = inputs_with(is_nan);
    if (found.empty()) found = inputs_with(is_made);
    if (found.empty() && !has_nan) found = inputs_with(is_passed_on);
    return found;
  }

  /// The state or input whose value that is not finite a node reads, through nodes that pass it on;
  /// "" if none.
  std::string given_by(const Node& node) const {
    const Node* at = &node;
    while (at != nullptr) {
      const auto found = std::find_if(at->inputs.begin(), at->inputs.end(),
                                      [&](ValueId input) { return input && marks(input).any(); });
      if (found == at->inputs.end()) return "";
      if (const State* const state = state_of_[index(*found)])
        return (state->kind == StateKind::buffer ? "the buffer " : "the frozen parameter ") +
               state->name;
      const Value& value = graph_.value(*found);
      if (value.kind == ValueKind::input) return "the input " + value.name;
      if (value.kind == ValueKind::constant) return "a constant";
      at = producer(*found);
    }
    return "";
  }

  NotFiniteOrigin origin_at(ValueId value) const {
    const bool is_nan = marks(value).nan;
    const Node* const node = producer(value);
    if (node == nullptr)
      return {.path = state_of_[index(value)] != nullptr ? state_of_[index(value)]->name
                                                         : graph_.value(value).name,
              .op = "",
              .is_nan = is_nan};
    const bool is_gradient = node->phase == Phase::backward;
    return {.path = node->path,
            .op = is_gradient ? forward_op(*node) : node->op->name,
            .is_nan = is_nan,
            .is_gradient = is_gradient,
            .given_by = given_by(*node)};
  }

  /// The operator whose gradient a node is a part of: of several at its path one that may have an
  /// infinite slope.
  std::string forward_op(const Node& gradient) const {
    std::string op = gradient.op->name;
    bool is_any = false;
    for (const Node& node : graph_.nodes) {
      if (node.phase != Phase::forward || node.path != gradient.path) continue;
      if (find_cause(node.op->name) != nullptr) return node.op->name;
      if (!is_any) op = node.op->name;
      is_any = true;
    }
    return op;
  }

  const Graph& graph_;
  const MarkedValues& marked_;
  std::vector<const State*> state_of_;  // by value
  std::vector<bool> made_;
};

}  // namespace

Diagnostic NotFiniteOrigin::diagnostic() const {
  const char* const what = is_nan ? "nan" : "inf";
  Diagnostic d;
  d.path = path;
  if (is_parameter()) {
    d.message =
        fmt::format("{} begins here, in this parameter, which had it before the step", what);
    return d;
  }
  d.message =
      fmt::format("{} begins here, in {}{}", what, is_gradient ? "the gradient of " : "", op);
  if (!given_by.empty() && op != "Softmax") {
    d.message += fmt::format(": it reads what is not finite in {}", given_by);
  } else if (const Cause* const known = find_cause(op)) {
    const std::string_view why = is_gradient ? known->gradient : known->forward;
    if (!why.empty()) d.message += fmt::format(": {}", why);
  }
  return d;
}

std::optional<NotFiniteOrigin> search_origin(const Graph& graph, const MarkedValues& marked,
                                             std::span<const ValueId> targets) {
  return Search(graph, marked).before(targets);
}

}  // namespace tandem
