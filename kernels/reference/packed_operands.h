// The packed matrix that three operands of a node are: data, scales and zero points.
#pragma once

#include "engine/device/kernel.h"
#include "kernels/reference/packed_codes.h"

namespace tandem {

/// The matrix whose data is input `first`; `point` gives it its addresses.
inline PackedMatrix packed_operand(const KernelRequest& request, std::size_t first) {
  PackedMatrix matrix;
  matrix.packing = packing_of(request.attributes(), request.inputs[first].type);
  matrix.format = packed_format(matrix.packing.kind);
  // float32 where the operand was widened for this kernel.
  if (!matrix.format.has_codes()) matrix.format.data = request.inputs[first].type.dtype;
  if (request.is_present(first + 1)) matrix.scale_type = request.inputs[first + 1].type.dtype;
  if (request.is_present(first + 2)) matrix.zero_type = request.inputs[first + 2].type.dtype;
  return matrix;
}

/// `matrix` at the addresses of this run. `has_zeros`: KernelRequest::is_present(first + 2).
inline PackedMatrix at_addresses(PackedMatrix matrix, const KernelArguments& arguments,
                                 std::size_t first, bool has_zeros) {
  matrix.data = static_cast<const std::uint8_t*>(arguments.inputs[first]);
  matrix.scales = matrix.format.has_codes() ? arguments.inputs[first + 1] : nullptr;
  matrix.zeros = has_zeros ? arguments.inputs[first + 2] : nullptr;
  return matrix;
}

}  // namespace tandem
