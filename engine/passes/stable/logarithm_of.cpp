#include "engine/passes/stable/logarithm_of.h"

#include <array>
#include <numbers>

namespace tandem {
namespace {

/// x where value = 1 - x or -x + 1.
ValueId complement(const Match& match, ValueId value) {
  if (const Node* sub = match.is(value, "Sub"))
    return match.is_number(sub->inputs[0], 1.0) ? sub->inputs[1] : ValueId{};
  const Node* add = match.is(value, "Add");
  if (add == nullptr) return {};
  const ValueId other = match.other_where(*add, [&](ValueId v) { return match.is_number(v, 1.0); });
  const Node* neg = other ? match.is(other, "Neg") : nullptr;
  return neg == nullptr ? ValueId{} : neg->inputs[0];
}

/// Whether what is subtracted from x, which has `axes` axes, is constant along the reduced axes,
/// and what is added to the sum has the same elements in the same order: each row gets its own.
bool is_one_a_row(const Shape& taken, const Shape& added, std::size_t axes, const LogSumExp& sum) {
  Shape rows(axes - taken.size(), 1);
  rows.insert(rows.end(), taken.begin(), taken.end());
  Shape of_sums;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const auto at = static_cast<std::int64_t>(axis);
    const bool is_reduced = std::find(sum.axes.begin(), sum.axes.end(), at) != sum.axes.end();
    if (is_reduced && rows[axis] != 1) return false;
    if (!is_reduced || sum.keepdims) of_sums.push_back(rows[axis]);
  }
  if (added.size() > of_sums.size()) return false;
  Shape aligned(of_sums.size() - added.size(), 1);
  aligned.insert(aligned.end(), added.begin(), added.end());
  return aligned == of_sums;
}

// -softplus(x)
ValueId minus_softplus(GraphRewrite& to, ValueId x) {
  return to.builder().neg(to.builder().add_node("Softplus", {x}));
}

std::optional<StableLogarithm> of_function(const Match& match, ValueId value) {
  StableLogarithm found;
  if (const Node* sigmoid = match.is(value, "Sigmoid")) {
    const ValueId x = sigmoid->inputs[0];
    found = {"-Softplus(-x)", {x}, [x](GraphRewrite& to) {
               return minus_softplus(to, to.builder().neg(to.mapped(x)));
             }};
    return found;
  }
  if (const Node* softmax = match.is(value, "Softmax")) {
    const ValueId x = softmax->inputs[0];
    const std::int64_t axis = softmax->attributes.integer("axis");
    found = {"LogSoftmax", {x}, [x, axis](GraphRewrite& to) {
               return to.builder().add_node("LogSoftmax", {to.mapped(x)}, {{"axis", axis}});
             }};
    return found;
  }
  if (const Node* cosh = match.is(value, "Cosh")) {  // (exp(x) + exp(-x)) / 2
    const ValueId x = cosh->inputs[0];
    found = {"abs(x) + Softplus(-2 abs(x)) - log(2)", {x}, [x](GraphRewrite& to) {
               GraphBuilder& builder = to.builder();
               const ValueId size = builder.add_node("Abs", {to.mapped(x)});
               const auto number = [&](double of) {
                 return builder.scalar(of, builder.dtype(size));
               };
               const ValueId rest = builder.add_node("Softplus", {builder.mul(size, number(-2))});
               return builder.sub(builder.add(size, rest), number(std::numbers::ln2));
             }};
    return found;
  }
  if (const ValueId other = complement(match, value)) {
    const Node* sigmoid = match.is(other, "Sigmoid");
    if (sigmoid != nullptr && match.graph().type(other) == match.graph().type(value)) {
      const ValueId x = sigmoid->inputs[0];
      found = {
          "-Softplus(x)", {x}, [x](GraphRewrite& to) { return minus_softplus(to, to.mapped(x)); }};
      return found;
    }
  }
  return std::nullopt;
}

// log(1 + x), as rounding 1 + x loses a small x.
std::optional<StableLogarithm> of_one_plus(const Match& match, ValueId value) {
  const Node* add = match.is(value, "Add");
  if (add == nullptr) return std::nullopt;
  const ValueId x = match.other_where(*add, [&](ValueId v) { return match.is_number(v, 1.0); });
  if (!x || match.graph().is_constant(x) || match.graph().type(x) != match.graph().type(value))
    return std::nullopt;
  return StableLogarithm{"Log1p", {x}, [x](GraphRewrite& to) {
                           return to.builder().add_node("Log1p", {to.mapped(x)});
                         }};
}

/// Operators that put the elements of their first operand elsewhere.
bool only_moves(const Node& node) {
  static constexpr std::array names{"Expand",  "Gather", "Identity",
                                    "Reshape", "Slice",  "Transpose"};
  return std::find(names.begin(), names.end(), node.op->name) != names.end();
}

}  // namespace

std::optional<StableLogarithm> stable_logarithm(const Match& match, ValueId value) {
  std::vector<NodeId> moves;  // the last one first
  ValueId inner = value;
  for (NodeId maker = match.producer(inner);
       maker && moves.size() < 16 && only_moves(match.graph().node(maker));
       maker = match.producer(inner)) {
    moves.push_back(maker);
    inner = match.graph().node(maker).inputs[0];
  }
  std::optional<StableLogarithm> found = of_function(match, inner);
  if (!found) found = logarithm_of_sum(match, inner);
  if (!found && moves.empty()) found = of_one_plus(match, inner);
  if (!found || moves.empty()) return found;
  for (const NodeId id : moves) {
    const std::vector<ValueId>& inputs = match.graph().node(id).inputs;
    found->leaves.insert(found->leaves.end(), inputs.begin() + 1, inputs.end());
  }
  found->build = [inside = found->build, moves, &graph = match.graph()](GraphRewrite& to) {
    ValueId result = inside(to);
    for (auto id = moves.rbegin(); id != moves.rend(); ++id) {
      const Node& node = graph.node(*id);
      std::vector<ValueId> inputs{result};
      for (std::size_t i = 1; i < node.inputs.size(); ++i)
        inputs.push_back(to.mapped(node.inputs[i]));
      result = to.builder().add_node(node.op->name, std::move(inputs), node.attributes);
    }
    return result;
  };
  return found;
}

std::optional<LogSumExp> log_sum_exp(const Match& match, ValueId value) {
  const auto of_log = [&](ValueId log_value) -> std::optional<LogSumExp> {
    const Node* log = match.is(log_value, "Log");
    const Node* sum = log != nullptr ? match.is(log->inputs[0], "ReduceSum") : nullptr;
    const Node* exp = sum != nullptr ? match.is(sum->inputs[0], "Exp") : nullptr;
    if (exp == nullptr) return std::nullopt;
    return LogSumExp{exp->inputs[0], sum->attributes.integers("axes"),
                     sum->attributes.flag("keepdims")};
  };
  if (const auto plain = of_log(value)) return plain;
  // log(sum(exp(x - m))) + m
  const Node* add = match.is(value, "Add");
  if (add == nullptr) return std::nullopt;
  for (int i = 0; i < 2; ++i) {
    std::optional<LogSumExp> found = of_log(add->inputs[i]);
    const Node* shifted = found ? match.is(found->x, "Sub") : nullptr;
    if (shifted == nullptr) continue;
    const ValueId taken = shifted->inputs[1], added = add->inputs[1 - i];
    const Node* reshape = added == taken ? nullptr : match.is(added, "Reshape");
    if (added != taken && (reshape == nullptr || reshape->inputs[0] != taken)) continue;
    const auto shape_of = [&](ValueId v) -> const Shape& { return match.graph().type(v).shape; };
    if (match.graph().type(found->x) != match.graph().type(shifted->inputs[0])) continue;
    if (!is_one_a_row(shape_of(taken), shape_of(added), shape_of(found->x).size(), *found))
      continue;
    found->x = shifted->inputs[0];
    return found;
  }
  return std::nullopt;
}

}  // namespace tandem
