// What the update operators have in common; GroupedUpdate calls the same functions for each of its
// groups.
#pragma once

#include "engine/operators/network_checks.h"

namespace tandem::operators {

inline constexpr const char* not_differentiable_update =
    "an optimizer's step comes after differentiation";

/// Settings of SgdUpdate and of AdamUpdate with their defaults.
std::vector<AttributeSpec> sgd_attributes();
std::vector<AttributeSpec> adam_attributes();
void require_sgd_settings(const NodeView& view);
void require_adam_settings(const NodeView& view);

/// The attribute `weight` of all updates: "bfloat16" or "float16" adds an output, the new master in
/// that type; "" adds none. Checked by the *_outputs below.
inline AttributeSpec weight_attribute() { return {"weight", std::string()}; }

/// Outputs of one update whose tensors start at input `first`: (master, grad, momentum_buffer or
/// absent) and (master, grad, exp_avg, exp_avg_sq). Throws through `fail` where they do not fit.
std::vector<TensorType> sgd_outputs(const NodeView& view, std::size_t first);
std::vector<TensorType> adam_outputs(const NodeView& view, std::size_t first);

/// The scalars lr, step, scale, skip from input `first` on.
inline void require_update_scalars(const NodeView& view, std::size_t first) {
  for (std::size_t i : {first, first + 2}) {
    if (view.input(i).dtype != DType::float64) require_dtype(view, i, DType::float32);
  }
  require_dtype(view, first + 1, DType::int64);
  require_dtype(view, first + 3, DType::boolean);
  for (std::size_t i = first; i < first + 4; ++i) require_shape(view, i, {});
}

/// The master is float32 (float64 for reference); its gradient has its shape and any float type.
inline TensorType require_master_and_grad(const NodeView& view, std::size_t first) {
  const TensorType& master = view.input(first);
  if (master.dtype != DType::float64) require_dtype(view, first, DType::float32);
  require_float(view, first + 1);
  require_shape(view, first + 1, master.shape);
  return master;
}

/// Adds the weight where the update makes one; input `old`, where it is present, is what the weight
/// overwrites.
void add_weight_output(const NodeView& view, std::size_t old, std::vector<TensorType>& outputs);

}  // namespace tandem::operators
