// Adam, Adagrad and Momentum of ai.onnx.preview.training, as the standard defines them:
// R is the learning rate, T the number of updates before this one, G the gradient of X.
#include "importer/operators/training/optimizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace tandem::importer {
namespace operators::training {
namespace {

constexpr std::size_t first_tensor = 2;  // after R and T

/// How many parameters a node has whose inputs are that many tensors of each.
std::size_t parameters_of(const NodeContext& node, std::size_t tensors) {
  const std::size_t given = node.input_count() < first_tensor ? 0 : node.input_count() - 2;
  if (given == 0 || given % tensors != 0) {
    node.fail(fmt::format("R and T, then {} tensors for each parameter", tensors),
              fmt::format("a multiple of {} after R and T", tensors), std::to_string(given));
  }
  return given / tensors;
}

/// Input k (0: X, 1: G, then states) of a parameter, of the type of its X.
const Term& tensor(const NodeContext& node, std::size_t parameters, std::size_t k, std::size_t i) {
  const Term& x = node.in(first_tensor + i);
  const Term& own = node.in(first_tensor + k * parameters + i);
  if (x.type.dtype != DType::float32 && x.type.dtype != DType::float64)
    node.fail("X", "float32 or float64", to_string(x.type));
  if (own.type != x.type) {
    node.fail(fmt::format("input {} has not the type of its X", first_tensor + k * parameters + i),
              to_string(x.type), to_string(own.type));
  }
  return own;
}

Term scalar_input(NodeContext& node, std::size_t i, const char* name) {
  const Term& x = node.in(i);
  const bool fits = i == 0 ? is_float(x.type.dtype) : x.type.dtype == DType::int64;
  if (!fits || x.type.elements() != 1) {
    node.fail(name, i == 0 ? "a floating-point scalar" : "an int64 scalar", to_string(x.type));
  }
  return node.reshape(x, {});
}
Term rate(NodeContext& node) { return scalar_input(node, 0, "R, the learning rate"); }
Term count(NodeContext& node) { return scalar_input(node, 1, "T, the count of updates"); }

/// Arithmetic with numbers of the type of the first operand.
struct Formula {
  NodeContext& node;
  DType dtype;

  Term number(double x) const { return node.scalar(x, dtype); }
  Term add(const Term& a, const Term& b) const { return node.make("Add", {a, b}); }
  Term sub(const Term& a, const Term& b) const { return node.make("Sub", {a, b}); }
  Term mul(const Term& a, const Term& b) const { return node.make("Mul", {a, b}); }
  Term div(const Term& a, const Term& b) const { return node.make("Div", {a, b}); }
  Term times(double a, const Term& x) const { return mul(number(a), x); }
};

/// G plus the gradient of norm_coefficient / 2 times the square of X's norm.
Term regularized(const Formula& f, double norm_coefficient, const Term& x, const Term& g) {
  return norm_coefficient == 0 ? g : f.add(f.times(norm_coefficient, x), g);
}

// Scalars of the step are float64, as in the engine's updates.
constexpr DType scalars = DType::float64;

/// T > 0 ? R sqrt(1 - beta^T) / (1 - alpha^T) : R
Term adam_rate(NodeContext& node, double alpha, double beta) {
  const Formula f{node, scalars};
  const Term r = node.cast(rate(node), scalars), t = count(node), power = node.cast(t, scalars);
  const auto rest = [&](double base) {
    return f.sub(f.number(1), node.make("Pow", {f.number(base), power}));
  };
  const Term corrected = f.div(f.mul(r, node.make("Sqrt", {rest(beta)})), rest(alpha));
  const Term has_begun = node.make("Greater", {t, node.scalar(0, DType::int64)});
  return node.make("Where", {has_begun, corrected, r});
}

/// R / (1 + T decay_factor)
Term adagrad_rate(NodeContext& node, double decay_factor) {
  const Formula f{node, scalars};
  const Term t = node.cast(count(node), scalars);
  return f.div(node.cast(rate(node), scalars), f.add(f.number(1), f.times(decay_factor, t)));
}

/// T > 0 ? beta : 1
Term momentum_beta(NodeContext& node, double beta) {
  const Term has_begun = node.make("Greater", {count(node), node.scalar(0, DType::int64)});
  return node.make("Where", {has_begun, node.scalar(beta, scalars), node.scalar(1, scalars)});
}

struct AdamNode {
  double alpha, beta, epsilon, norm_coefficient, norm_coefficient_post;
  explicit AdamNode(const NodeContext& node)
      : alpha(node.number("alpha", 0.9f)),
        beta(node.number("beta", 0.999f)),
        epsilon(node.number("epsilon", 1e-6f)),
        norm_coefficient(node.number("norm_coefficient", 0)),
        norm_coefficient_post(node.number("norm_coefficient_post", 0)) {}
};

struct AdagradNode {
  double decay_factor, epsilon, norm_coefficient;
  explicit AdagradNode(const NodeContext& node)
      : decay_factor(node.number("decay_factor", 0)),
        epsilon(node.number("epsilon", 1e-6f)),
        norm_coefficient(node.number("norm_coefficient", 0)) {}
};

struct MomentumNode {
  double alpha, beta, norm_coefficient;
  bool nesterov;
  explicit MomentumNode(const NodeContext& node)
      : alpha(node.number("alpha", 0)),
        beta(node.number("beta", 0)),
        norm_coefficient(node.number("norm_coefficient", 0)) {
    const std::string mode = node.text("mode", "");
    if (mode != "standard" && mode != "nesterov")
      node.fail("mode", "\"standard\" or \"nesterov\"", "\"" + mode + "\"");
    nesterov = mode == "nesterov";
  }
};

bool is_at_least_zero(std::initializer_list<double> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double x) { return x >= 0; });
}

}  // namespace

void adam(NodeContext& node) {
  const AdamNode a(node);
  const std::size_t parameters = parameters_of(node, 4);
  const Term exact = adam_rate(node, a.alpha, a.beta);
  for (std::size_t i = 0; i < parameters; ++i) {
    const auto in = [&](std::size_t k) -> const Term& { return tensor(node, parameters, k, i); };
    const Formula f{node, in(0).type.dtype};
    const Term g = regularized(f, a.norm_coefficient, in(0), in(1));
    const Term v = f.add(f.times(a.alpha, in(2)), f.times(1 - a.alpha, g));
    const Term h = f.add(f.times(a.beta, in(3)), f.mul(f.times(1 - a.beta, g), g));
    const Term root = f.add(node.make("Sqrt", {h}), f.number(a.epsilon));
    const Term moved = f.sub(in(0), f.div(f.mul(node.cast(exact, f.dtype), v), root));
    const double kept = 1 - a.norm_coefficient_post;
    node.out(i, kept == 1 ? moved : f.times(kept, moved));
    node.out(parameters + i, v);
    node.out(2 * parameters + i, h);
  }
}

void adagrad(NodeContext& node) {
  const AdagradNode a(node);
  const std::size_t parameters = parameters_of(node, 3);
  const Term exact = adagrad_rate(node, a.decay_factor);
  for (std::size_t i = 0; i < parameters; ++i) {
    const auto in = [&](std::size_t k) -> const Term& { return tensor(node, parameters, k, i); };
    const Formula f{node, in(0).type.dtype};
    const Term g = regularized(f, a.norm_coefficient, in(0), in(1));
    const Term h = f.add(in(2), f.mul(g, g));
    const Term root = f.add(node.make("Sqrt", {h}), f.number(a.epsilon));
    node.out(i, f.sub(in(0), f.div(f.mul(node.cast(exact, f.dtype), g), root)));
    node.out(parameters + i, h);
  }
}

void momentum(NodeContext& node) {
  const MomentumNode a(node);
  const std::size_t parameters = parameters_of(node, 3);
  const Term beta = momentum_beta(node, a.beta), r = rate(node);
  for (std::size_t i = 0; i < parameters; ++i) {
    const auto in = [&](std::size_t k) -> const Term& { return tensor(node, parameters, k, i); };
    const Formula f{node, in(0).type.dtype};
    const Term g = regularized(f, a.norm_coefficient, in(0), in(1));
    const Term v = f.add(f.times(a.alpha, in(2)), f.mul(node.cast(beta, f.dtype), g));
    const Term step = a.nesterov ? f.add(g, f.times(a.alpha, v)) : v;
    node.out(i, f.sub(in(0), f.mul(node.cast(r, f.dtype), step)));
    node.out(parameters + i, v);
  }
}

}  // namespace operators::training

using namespace operators::training;

OptimizerStep optimizer_step(NodeContext& node) {
  OptimizerStep step;
  const std::string& op = node.node().op_type();
  step.states = op == "Adam" ? 2 : 1;
  step.parameters = parameters_of(node, 2 + step.states);
  step.lr = rate(node);
  const Term t = count(node);
  step.step = node.make("Add", {t, node.scalar(1, DType::int64)});  // counted from 1
  if (op == "Adam") {
    const AdamNode a(node);
    // The corrections are in the rate: T is 0 in a first step, where the engine counts from 1.
    step.lr = adam_rate(node, a.alpha, a.beta);
    step.settings = {{"weight_decay", a.norm_coefficient},
                     {"beta1", a.alpha},
                     {"beta2", a.beta},
                     {"epsilon", a.epsilon},
                     {"epsilon_form", std::string("onnx")},
                     {"bias_correction", std::int64_t{0}}};
    const bool fits = is_at_least_zero({a.alpha, a.beta, a.epsilon, a.norm_coefficient}) &&
                      a.alpha < 1 && a.beta < 1 && a.norm_coefficient_post == 0;
    if (fits) step.update = "AdamUpdate";
  } else if (op == "Adagrad") {
    const AdagradNode a(node);
    step.settings = {
        {"weight_decay", a.norm_coefficient}, {"epsilon", a.epsilon}, {"lr_decay", a.decay_factor}};
    if (is_at_least_zero({a.decay_factor, a.epsilon, a.norm_coefficient}))
      step.update = "AdagradUpdate";
  } else {
    const MomentumNode a(node);
    step.settings = {{"weight_decay", a.norm_coefficient},
                     {"momentum", a.alpha},
                     {"beta", a.beta},
                     {"nesterov", std::int64_t{a.nesterov}}};
    if (is_at_least_zero({a.alpha, a.beta, a.norm_coefficient}) && a.alpha <= 1)
      step.update = "MomentumUpdate";
  }
  step.lr = node.cast(step.lr, DType::float32);
  return step;
}

}  // namespace tandem::importer
