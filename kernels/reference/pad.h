// Pad and its gradient by a table per axis: which element of x each element of y comes from.
#pragma once

#include "kernels/reference/support.h"
#include "kernels/shared/scalar.h"

namespace tandem::reference {

/// sources[axis][i]: the index in x of y's index i; -1 in a constant border.
using PadTable = std::vector<Ints>;

PadTable pad_table(const Attributes& attributes, const Shape& x);

/// The place in x of the element of y that `y_walk` is at, or nothing in a constant border.
inline std::optional<std::int64_t> padded_source(const PadTable& table, const Ints& x_strides,
                                                 const Position& y_walk) {
  std::int64_t place = 0;
  for (std::size_t axis = 0; axis < table.size(); ++axis) {
    const std::int64_t index = table[axis][y_walk.index(axis)];
    if (index < 0) return std::nullopt;
    place += index * x_strides[axis];
  }
  return place;
}

template <class T>
std::unique_ptr<PreparedKernel> prepare_pad_grad(const KernelRequest& request) {
  return prepared([table = pad_table(request.attributes(), request.outputs[0].type.shape),
                   strides = request.outputs[0].layout.strides, dy_walk = walk(request.inputs[0]),
                   dx_walk = walk(request.outputs[0])](const KernelArguments& arguments) mutable {
    const T* dy = static_cast<const T*>(arguments.inputs[0]);
    T* dx = static_cast<T*>(arguments.outputs[0]);
    zero_elements(dx, dx_walk, sizeof(T));
    for (std::int64_t i = 0; i < dy_walk.count(); ++i, dy_walk.next()) {
      const auto place = padded_source(table, strides, dy_walk);
      if (!place) continue;
      dx[*place] = stored<T>(
          scalar::add<Computed<T>>(static_cast<Computed<T>>(dx[*place]), dy[dy_walk.at()]));
    }
  });
}

}  // namespace tandem::reference
