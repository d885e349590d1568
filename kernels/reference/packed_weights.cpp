// Unpack and PackedMatMul, number by number.
#include "kernels/reference/network_support.h"
#include "kernels/reference/packed_operands.h"

namespace tandem::reference {
namespace {

constexpr auto prepare_unpack = []<class T>(const KernelRequest& request, T) {
  return prepared([matrix = packed_operand(request, 0),
                   has_zeros = request.is_present(2)](const KernelArguments& arguments) {
    const PackedMatrix from = at_addresses(matrix, arguments, 0, has_zeros);
    T* y = static_cast<T*>(arguments.outputs[0]);
    for (std::int64_t r = 0; r < from.packing.rows; ++r) {
      for (std::int64_t c = 0; c < from.packing.columns; ++c) *y++ = unpacked<T>(from, r, c);
    }
  });
};

constexpr auto prepare_packed_matmul = []<class T>(const KernelRequest& request, T) {
  return prepared([matrix = packed_operand(request, 1), has_zeros = request.is_present(3),
                   transposed = request.attributes().flag("transposed"),
                   inner = request.inputs[0].type.shape.back(),
                   outer = request.outputs[0].type.shape.back(),
                   count = request.outputs[0].type.elements()](const KernelArguments& arguments) {
    const PackedMatrix w = at_addresses(matrix, arguments, 1, has_zeros);
    const T* x = static_cast<const T*>(arguments.inputs[0]);
    T* y = static_cast<T*>(arguments.outputs[0]);
    for (std::int64_t i = 0; i < count; ++i) {
      const T* const row = x + i / outer * inner;
      const std::int64_t n = i % outer;
      Accumulator<T> sum = 0;
      for (std::int64_t k = 0; k < inner; ++k) {
        const double number = transposed ? unpacked<double>(w, n, k) : unpacked<double>(w, k, n);
        sum += widened(row[k]) * number;
      }
      y[i] = narrowed<T>(sum);
    }
  });
};

// Kernels for rows that lie one after the other.
Kernel row_major(Kernel kernel) {
  kernel.propose = propose_row_major;
  return kernel;
}

constexpr auto prepare_by_result = [](const KernelRequest& request) {
  return with_main_type(request.outputs[0].type.dtype,
                        [&](auto tag) { return prepare_unpack(request, tag); });
};

}  // namespace

void add_packed_weights(KernelList& list) {
  list.push_back(row_major(untyped_kernel("reference.unpack", "Unpack", prepare_by_result)));
  list.push_back(row_major(
      any_float_kernel("reference.packed_matmul", "PackedMatMul", prepare_packed_matmul)));
}

}  // namespace tandem::reference
