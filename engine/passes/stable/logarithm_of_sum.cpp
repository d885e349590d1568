// Logarithms of sums of exponentials: of a few terms, over axes, up to each element of an axis.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/passes/stable/logarithm_of.h"

namespace tandem {
namespace {

constexpr std::size_t most_terms = 8;

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

bool same_type(const Match& match, ValueId a, ValueId b) {
  return match.graph().type(a).dtype == match.graph().type(b).dtype;
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

// y[i] = log(sum of exp(x[j]) over j <= i): each round adds what stands 1, 2, 4, ... places before.
std::optional<StableLogarithm> of_running_sum(const Match& match, ValueId value) {
  const Node* sum = match.is(value, "CumSum");
  const Node* exp = sum != nullptr ? match.is(sum->inputs[0], "Exp") : nullptr;
  if (exp == nullptr || sum->attributes.flag("exclusive")) return std::nullopt;
  const ValueId x = exp->inputs[0];
  const auto axis = static_cast<std::size_t>(sum->attributes.integer("axis"));
  StableLogarithm found;
  found.name = "log(cumsum(exp)) as LogAddExp";
  found.leaves = {x};
  found.build = [=, is_reverse = sum->attributes.flag("reverse")](GraphRewrite& to) {
    GraphBuilder& builder = to.builder();
    ValueId result = to.mapped(x);
    const Shape shape = builder.shape(result);
    for (std::int64_t step = 1; step < shape[axis]; step *= 2) {
      Ints starts(shape.size(), 0), sizes = shape, pads(2 * shape.size(), 0);
      sizes[axis] -= step;
      starts[axis] = is_reverse ? step : 0;
      pads[is_reverse ? shape.size() + axis : axis] = step;
      const ValueId others = builder.add_node(
          "Slice", {result},
          {{"starts", starts}, {"sizes", sizes}, {"steps", Ints(shape.size(), 1)}});
      const ValueId before = builder.add_node(
          "Pad", {others}, {{"pads", pads}, {"value", -std::numeric_limits<double>::infinity()}});
      result = log_add_exp(builder, result, before);
    }
    return result;
  };
  return found;
}

}  // namespace

std::optional<StableLogarithm> logarithm_of_sum(const Match& match, ValueId value) {
  std::optional<StableLogarithm> found = of_terms(match, value);
  if (!found) found = of_reduction(match, value);
  return found ? found : of_running_sum(match, value);
}

}  // namespace tandem
