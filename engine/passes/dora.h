// Weight-decomposed adapters (DoRA, Liu et al. 2024): a magnitude for each output of a weight,
// which trains next to the adapters.
#pragma once

#include <span>

#include "engine/graph/builder.h"
#include "engine/graph/host_tensor.h"
#include "engine/passes/adapted_weights.h"

namespace tandem {

// y_o = m_o / ||V_o|| (x V)_o + bias_o    V = W + scale A B, and V_o what output o multiplies by
//
// No gradient flows through ||V_o||, as in the publication (section 4.3) and in PEFT.

/// ||W_o|| of each output, in the weight's type: what magnitudes start with, since B starts at
/// zero.
HostTensor weight_norms(const AdaptedWeight& weight, const HostTensor& w);

/// m_o / ||V_o||, in a shape that broadcasts to a product with the weight. `w`, `a` and `b` are in
/// the weight's orientation.
ValueId magnitude_factor(GraphBuilder& g, const AdaptedWeight& weight, ValueId w, ValueId a,
                         ValueId b, ValueId magnitude);

/// Multiplies each V_o by m_o / ||V_o||; `v` is V, row-major in the weight's shape.
void set_norms(const AdaptedWeight& weight, std::span<double> v, const HostTensor& magnitude);

}  // namespace tandem
