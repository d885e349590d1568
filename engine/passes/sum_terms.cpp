#include "engine/passes/sum_terms.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "engine/operators/operator.h"

namespace tandem {
namespace {

constexpr int most_operators = 8;  // in a chain

bool is_passed_on(std::string_view op) {
  return op == "Identity" || op == "StopGradient" || op == "Cast";
}

/// The factor of an operand of `node` in its result, where that is a product with a number.
std::optional<double> factor_of(const NoiseMap& numbers, const Node& node, std::size_t operand) {
  const std::string_view op = node.op->name;
  if (is_passed_on(op)) return 1;
  if (op == "Neg") return -1;
  if (op != "Mul" && (op != "Div" || operand != 0)) return std::nullopt;
  const std::optional<double> number = numbers.number(node.inputs[1 - operand]);
  if (!number || op == "Mul") return number;
  return *number == 0 ? std::nullopt : std::optional(1 / *number);
}

bool is_sum(std::string_view op) { return op == "Add" || op == "Sub"; }

double sign_of(const Node& node, std::size_t operand) {
  return std::string_view(node.op->name) == "Sub" && operand == 1 ? -1 : 1;
}

}  // namespace

bool SumTerms::goes_over(ValueId value, ValueId x) const {
  Terms terms;
  add(x, 1, 0, terms);
  return meets_opposite(value, 1, 0, terms);
}

void SumTerms::add(ValueId value, double factor, int depth, Terms& terms) const {
  const NodeId id = graph_.value(value).producer;
  if (id && depth < most_operators) {
    const Node& node = graph_.node(id);
    if (is_sum(node.op->name)) {
      for (const std::size_t i : {0, 1})
        add(node.inputs[i], factor * sign_of(node, i), depth + 1, terms);
      return;
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(node.inputs.size(), 2); ++i) {
      const std::optional<double> number = factor_of(numbers_, node, i);
      if (!number) continue;
      add(node.inputs[i], factor * *number, depth + 1, terms);
      return;
    }
  }
  terms[value.index] += factor;
}

// `terms`: those of the value that the walk began with, which `value` contains times `factor`.
bool SumTerms::meets_opposite(ValueId value, double factor, int depth, const Terms& terms) const {
  if (depth == most_operators) return false;
  for (const NodeId reader : readers_[static_cast<std::size_t>(value.index)]) {
    const Node& node = graph_.node(reader);
    const std::size_t at = node.inputs[0] == value ? 0 : 1;
    double now = factor;
    if (is_sum(node.op->name)) {
      now *= sign_of(node, at);
      Terms others;
      add(node.inputs[1 - at], sign_of(node, 1 - at), 0, others);
      const auto is_opposite = [&](const auto& other) {
        const auto own = terms.find(other.first);
        return own != terms.end() && own->second * now * other.second < 0;
      };
      if (std::any_of(others.begin(), others.end(), is_opposite)) return true;
    } else if (const auto number =
                   node.inputs.size() > at ? factor_of(numbers_, node, at) : std::nullopt) {
      now *= *number;
    } else {
      continue;
    }
    if (meets_opposite(node.outputs[0], now, depth + 1, terms)) return true;
  }
  return false;
}

}  // namespace tandem
