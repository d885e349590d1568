#include "engine/passes/stable/logarithm_of.h"

#include <array>
#include <cmath>
#include <numbers>

namespace tandem {
namespace {

constexpr std::size_t most_terms = 8;

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

/// Whether a maximum is taken away from x already, so that its exponentials stay in range.
bool is_shifted(const Match& match, ValueId x) {
  const Node* sub = match.is(x, "Sub");
  if (sub == nullptr) return false;
  static constexpr std::array passed{"Cast",     "Clip",    "Expand",
                                     "Identity", "Reshape", "StopGradient"};
  ValueId shift = sub->inputs[1];
  for (int step = 0; step < 8; ++step) {
    if (match.is(shift, "ReduceMax") != nullptr) return true;
    const NodeId maker = match.producer(shift);
    if (!maker) return false;
    const Node& node = match.graph().node(maker);
    if (std::find(passed.begin(), passed.end(), node.op->name) == passed.end()) return false;
    shift = node.inputs[0];
  }
  return false;
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

bool same_type(const Match& match, ValueId a, ValueId b) {
  return match.graph().type(a).dtype == match.graph().type(b).dtype;
}

// -softplus(x)
ValueId minus_softplus(GraphRewrite& to, ValueId x) {
  return to.builder().neg(to.builder().add_node("Softplus", {x}));
}

// log(exp(a) + exp(b)) = max(a, b) + softplus(-|a - b|); the difference of equal infinities is 0.
ValueId log_add_exp(GraphBuilder& to, ValueId a, ValueId b) {
  const ValueId equal = to.add_node("Equal", {a, b});
  const ValueId zero = to.scalar(0, to.dtype(a));
  const ValueId difference = to.add_node("Where", {equal, zero, to.sub(a, b)});
  const ValueId rest = to.add_node("Softplus", {to.neg(to.add_node("Abs", {difference}))});
  return to.add(to.add_node("Max", {a, b}), rest);
}

/// A term of a sum: exp(of), or a positive constant.
struct Term {
  ValueId exponent;
  double constant = 0;
};

bool collect_terms(const Match& match, ValueId value, std::vector<Term>& terms) {
  if (terms.size() >= most_terms) return false;
  if (const auto number = match.number(value)) {
    if (!(*number > 0) || !std::isfinite(*number)) return false;
    terms.push_back({{}, *number});
    return true;
  }
  if (const Node* exp = match.is(value, "Exp")) {
    terms.push_back({exp->inputs[0], 0});
    return true;
  }
  const Node* add = match.is(value, "Add");
  return add != nullptr && collect_terms(match, add->inputs[0], terms) &&
         collect_terms(match, add->inputs[1], terms);
}

std::optional<StableLogarithm> of_terms(const Match& match, ValueId value) {
  std::vector<Term> terms;
  if (!collect_terms(match, value, terms)) return std::nullopt;
  StableLogarithm found;
  double constants = 0;
  std::vector<ValueId> exponents;
  for (const Term& term : terms) {
    constants += term.constant;
    if (term.exponent) exponents.push_back(term.exponent);
  }
  if (exponents.empty()) return std::nullopt;
  for (const ValueId x : exponents) {
    if (!same_type(match, x, value)) return std::nullopt;
  }
  const TensorType type = match.graph().type(value);
  found.leaves = exponents;
  found.name = exponents.size() == 1 && constants == 1 ? "Softplus" : "LogAddExp";
  found.build = [exponents, constants, type](GraphRewrite& to) {
    GraphBuilder& builder = to.builder();
    ValueId result = to.mapped(exponents[0]);
    if (exponents.size() == 1 && constants == 1)
      return builder.expand(builder.add_node("Softplus", {result}), type.shape);
    for (std::size_t i = 1; i < exponents.size(); ++i)
      result = log_add_exp(builder, result, to.mapped(exponents[i]));
    if (constants > 0)
      result = log_add_exp(builder, result, builder.scalar(std::log(constants), type.dtype));
    return builder.expand(result, type.shape);
  };
  return found;
}

// log(sum(exp(x - m))) + m with m a whole number near the largest x, through which no gradient
// flows; for a mean, less the logarithm of the count.
std::optional<StableLogarithm> of_reduction(const Match& match, ValueId value) {
  const Node* sum = match.is(value, "ReduceSum");
  const Node* mean = sum == nullptr ? match.is(value, "ReduceMean") : nullptr;
  const Node* reduction = sum != nullptr ? sum : mean;
  const Node* exp = reduction != nullptr ? match.is(reduction->inputs[0], "Exp") : nullptr;
  if (exp == nullptr || is_shifted(match, exp->inputs[0])) return std::nullopt;
  const ValueId x = exp->inputs[0];
  const Ints axes = reduction->attributes.integers("axes");
  const Shape& shape = match.graph().type(x).shape;
  const TensorType type = match.graph().type(value);
  double count = 1;
  for (const std::int64_t axis : axes)
    count *= static_cast<double>(shape[static_cast<std::size_t>(axis)]);
  if (axes.empty() || count == 0) return std::nullopt;
  const bool keepdims = reduction->attributes.flag("keepdims");
  StableLogarithm found;
  found.name = "log(sum(exp)) of numbers shifted by their maximum";
  found.leaves = {x};
  found.build = [=, is_mean = mean != nullptr](GraphRewrite& to) {
    GraphBuilder& builder = to.builder();
    const double limit = 0x1p62;  // larger numbers are whole, but do not fit int64
    const ValueId from = to.mapped(x);
    const ValueId largest =
        builder.add_node("ReduceMax", {from}, {{"axes", axes}, {"keepdims", std::int64_t{1}}});
    const ValueId whole = builder.cast(
        builder.add_node("Clip", {largest}, {{"min", -limit}, {"max", limit}}), DType::int64);
    const ValueId shift = builder.cast(whole, type.dtype);
    const ValueId powers = builder.add_node("Exp", {builder.sub(from, shift)});
    const ValueId total = builder.reduce_sum(powers, axes, keepdims);
    ValueId result =
        builder.add(builder.add_node("Log", {total}), builder.reshape(shift, type.shape));
    if (is_mean) result = builder.sub(result, builder.scalar(std::log(count), type.dtype));
    return result;
  };
  return found;
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
  if (!found) found = of_terms(match, inner);
  if (!found) found = of_reduction(match, inner);
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
