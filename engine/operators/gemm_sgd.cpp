// new_master = master - lr alpha a b, in place: a weight gradient and its plain SGD update in one.
#include "engine/operators/checks.h"
#include "engine/operators/matmul.h"
#include "engine/operators/operator.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_gemm_sgd(const NodeView& node) {
  require_float(node, 0);
  require_same_dtype(node, 0, 1);
  require_same_dtype(node, 0, 2);
  require_rank(node, 1, 2);
  require_rank(node, 2, 2);
  require_shape(node, 0, product_shape(node, 1, 2));
  require_dtype(node, 3, DType::float32);
  require_shape(node, 3, {});
  return {node.input(0)};
}

Cost gemm_sgd_cost(const NodeView& node) { return product_cost(node, 1, 2); }

}  // namespace

Operator gemm_sgd() {
  return {.name = "GemmSgd",
          .role = Role::product_update,
          .inputs = {{"master"}, {"a"}, {"b"}, {"lr"}},
          .outputs = {{"new_master"}},
          .attributes = {{"alpha", 1.0}},
          .infer = infer_gemm_sgd,
          .not_differentiable = "an update",
          .cost = gemm_sgd_cost,
          .aliases = {{0, 0}},
          .engine_only = true};
}

}  // namespace tandem::operators
