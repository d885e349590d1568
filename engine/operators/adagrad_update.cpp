// Adagrad (Duchi et al. 2011) in PyTorch's form, with g = scale * grad + weight_decay * master and
// rate = lr / (1 + (step - 1) * lr_decay): sum += g^2, master -= rate * g / (sqrt(sum) + epsilon).
// The row-wise form (FBGEMM's) keeps one sum for each row: sum += mean of the row's g^2. `skip`
// keeps all.
#include "engine/operators/operators.h"
#include "engine/operators/update.h"

namespace tandem::operators {
namespace {

void require_settings(const NodeView& view) {
  for (const char* name : {"epsilon", "weight_decay", "lr_decay"}) require_not_negative(view, name);
}

bool keeps_still(const Attributes& settings) { return settings.number("weight_decay") == 0.0; }

std::vector<AttributeSpec> settings() {
  return {{"epsilon", 1e-10}, {"weight_decay", 0.0}, {"lr_decay", 0.0}};
}

}  // namespace

UpdateKind adagrad_kind() {
  return {.op = "AdagradUpdate",
          .attributes = settings(),
          .states = {{.name = "sum", .squares = true}},
          .require_settings = require_settings,
          .keeps_still = keeps_still,
          .flops = 7};
}

UpdateKind rowwise_adagrad_kind() {
  return {.op = "RowwiseAdagradUpdate",
          .attributes = settings(),
          .states = {{.name = "row_sum", .by_row = true, .squares = true}},
          .require_settings = require_settings,
          .keeps_still = keeps_still,
          .whole_row = true,
          .flops = 6};
}

Operator adagrad_update() { return update_operator(adagrad_kind()); }
Operator rowwise_adagrad_update() { return update_operator(rowwise_adagrad_kind()); }

}  // namespace tandem::operators
