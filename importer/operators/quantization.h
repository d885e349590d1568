// What integer products need of quantization.
#pragma once

#include "importer/node_context.h"

namespace tandem::importer::operators {

/// Whether numbers of that type can be a quantized result: integers of 8 or 16 bits.
bool is_quantized(DType dtype);

/// x cut to a range, with a slope of 1 at its ends too, as PyTorch's fake quantization; Clip has
/// none there.
Term cut_to(NodeContext& node, const Term& x, double low, double high);

/// x (floating point, whole numbers) in the range of `to`, and of that type.
Term saturated(NodeContext& node, const Term& x, DType to);

}  // namespace tandem::importer::operators
