// What the files of the update operators share.
#pragma once

#include "engine/operators/network_checks.h"
#include "engine/operators/update_kind.h"

namespace tandem::operators {

inline constexpr const char* not_differentiable_update =
    "an optimizer's step comes after differentiation";

/// The operator for one parameter: (master, grad, states..., lr, step, scale, skip, weight?) ->
/// (new_master, new states..., new_weight?); updates by row make no weight.
Operator update_operator(const UpdateKind& kind);

/// The attribute `weight` of all updates: "bfloat16" or "float16" adds an output, the new master in
/// that type; "" adds none.
inline AttributeSpec weight_attribute() { return {"weight", std::string()}; }

/// The scalars lr, step, scale, skip from input `first` on.
void require_update_scalars(const NodeView& view, std::size_t first);

/// Requires the master to have the rows that the kind works on.
void require_rows(const NodeView& view, const UpdateKind& kind, const TensorType& master);
/// The master at input `first` is float32 (float64 for reference) and fits the kind.
const TensorType& require_master(const NodeView& view, const UpdateKind& kind, std::size_t first);
/// Its gradient at input `grad` has its shape and any float type.
void require_gradient(const NodeView& view, std::size_t grad, const TensorType& master);
/// The states from input `first` on, as kind and settings want them; appends the outputs' types,
/// empty ones for states that are not there.
void add_state_outputs(const NodeView& view, const UpdateKind& kind, const TensorType& master,
                       std::size_t first, std::vector<TensorType>& outputs);
/// Adds the weight where the update makes one; input `old`, where it is present, is what the weight
/// overwrites.
void add_weight_output(const NodeView& view, std::size_t old, std::vector<TensorType>& outputs);
/// Bytes that a kind of whole tensors reads again after reading each operand once: master and
/// states.
double bytes_read_again(const UpdateKind& kind, const TensorType& master);

}  // namespace tandem::operators
