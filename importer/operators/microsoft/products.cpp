// Products with transposes, factors and activations in one node.

#include <numeric>

#include "importer/node_context.h"
#include "importer/operators/matmul.h"
#include "importer/operators/window.h"

namespace tandem::importer::operators::microsoft {
namespace {

// With `batch` the first axis moves to just before the last; then with `last` the last two axes are
// exchanged.
Term arranged(NodeContext& node, std::size_t i, bool last, bool batch) {
  const auto rank = static_cast<std::size_t>(node.rank(i));
  if (rank < 2) return node.in(i);  // a vector stays as it is
  Ints perm(rank);
  std::iota(perm.begin(), perm.end(), std::int64_t{0});
  if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (last) std::swap(perm[rank - 2], perm[rank - 1]);
  return node.transpose(node.in(i), perm);
}

struct Settings {
  double first = 0, second = 0;
};

Term activated(NodeContext& node, const Term& x, const std::string& activation,
               const Settings& settings) {
  if (activation.empty()) return x;
  if (activation == "Relu" || activation == "Tanh" || activation == "Sigmoid") {
    return node.make(activation, {x});
  }
  if (activation == "LeakyRelu") return node.make("LeakyRelu", {x}, {{"alpha", settings.first}});
  if (activation == "Clip") {
    return node.make("Clip", {x}, {{"min", settings.first}, {"max", settings.second}});
  }
  if (activation == "HardSigmoid") {
    return node.make("HardSigmoid", {x}, {{"alpha", settings.first}, {"beta", settings.second}});
  }
  node.unsupported("with the activation " + activation);
}

}  // namespace

void fused_matmul(NodeContext& node) {
  const auto operand = [&](std::size_t i, const char* last, const char* batch) {
    return arranged(node, i, node.flag(last, false), node.flag(batch, false));
  };
  const Term a = operand(0, "transA", "transBatchA"), b = operand(1, "transB", "transBatchB");
  const Term product = node.make("MatMul", {a, b});
  const double alpha = node.number("alpha", 1.0);
  node.out(0, alpha == 1.0 ? product
                           : node.make("Mul", {product, node.scalar(alpha, product.type.dtype)}));
}

void fused_gemm(NodeContext& node) {
  const Settings settings{node.number("activation_alpha", 0), node.number("activation_beta", 0)};
  node.number("activation_gamma", 0);  // no activation of the list above reads it
  node.out(0, activated(node, general_product(node), node.text("activation", ""), settings));
}

// Z is added before the activation.
void fused_conv(NodeContext& node) {
  Term y = convolution(node);
  if (node.has(3)) y = node.make("Add", {y, node.in(3)});
  Settings settings;
  if (const onnx::AttributeProto* given = node.attribute("activation_params")) {
    if (given->floats_size() > 0) settings.first = given->floats(0);
    if (given->floats_size() > 1) settings.second = given->floats(1);
  }
  node.out(0, activated(node, y, node.text("activation", ""), settings));
}

}  // namespace tandem::importer::operators::microsoft
