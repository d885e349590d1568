// Random numbers of x's shape and type, by Philox keyed by (seed, step, micro-batch, path) at the
// element's row-major index, which counts over all ranks where `samples` is set, as in Dropout. x's
// elements are not read.
#include "engine/operators/network_checks.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_uniform(const NodeView& node) {
  require_float(node, 0);
  require_samples(node);
  for (const char* name : {"low", "high"}) require_between(node, name, -1e300, 1e300);
  return {node.input(0)};
}

std::vector<TensorType> infer_normal(const NodeView& node) {
  require_float(node, 0);
  require_samples(node);
  for (const char* name : {"mean", "scale"}) require_between(node, name, -1e300, 1e300);
  return {node.input(0)};
}

// y does not depend on x.
Gradients random_gradient(GradientContext&) { return {ValueId{}}; }

// Ten rounds of Philox for four words.
Cost random_cost(const NodeView& node) {
  return {40 * element_number(node.input(0)), static_cast<double>(node.input(0).bytes())};
}

Operator random_operator(std::string name, std::vector<AttributeSpec> attributes,
                         std::vector<TensorType> (*infer)(const NodeView&)) {
  attributes.push_back({"samples", Ints{}});
  return {.name = std::move(name),
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = std::move(attributes),
          .infer = infer,
          .gradient = random_gradient,
          .cost = random_cost,
          .drops_elements = true,
          .random = true};
}

}  // namespace

// low + (high - low) u with u = floor(word / 2^8) / 2^24, which float32 holds
Operator random_uniform_like() {
  return random_operator("RandomUniformLike", {{"low", 0.0}, {"high", 1.0}}, infer_uniform);
}

// mean + scale z with z = sqrt(-2 log(u)) cos(2 pi v), u = (word + 1) / 2^32 of element 2 i and
// v = word / 2^32 of element 2 i + 1
Operator random_normal_like() {
  return random_operator("RandomNormalLike", {{"mean", 0.0}, {"scale", 1.0}}, infer_normal);
}

}  // namespace tandem::operators
