// Gather and its gradient: the walks of both, and the checked index.
#pragma once

#include "engine/operators/tables/rows.h"
#include "kernels/reference/support.h"
#include "kernels/shared/scalar.h"

namespace tandem::reference {

/// Walks over y's shape: in y, in x without the gathered axis, and in indices.
struct GatherWalk {
  Position y, x, indices;
  std::int64_t extent = 0, stride = 0;  // of x's gathered axis
  bool wide = false;                    // int64 indices
  std::int32_t node = -1;

  void next() {
    y.next();
    x.next();
    indices.next();
  }

  /// The index in [0, extent) that y's element comes from, -1 for an absent one; reports one that
  /// is out of range.
  std::int64_t index(const void* data, const StepContext* context) const {
    const std::int64_t given = wide ? static_cast<const std::int64_t*>(data)[indices.at()]
                                    : static_cast<const std::int32_t*>(data)[indices.at()];
    if (given == absent_id_of(wide ? DType::int64 : DType::int32)) return -1;
    const std::int64_t index = given < 0 ? given + extent : given;
    if (index >= 0 && index < extent) return index;
    if (context != nullptr && context->error != nullptr) {
      context->error->report(ErrorWord::index_out_of_range, node, given);
    }
    return index < 0 ? 0 : extent - 1;
  }
};

/// `x` is the operand that is gathered from (or its gradient), `y` what is gathered.
inline GatherWalk gather_walk(const KernelRequest& request, const Operand& x, const Operand& y) {
  const Operand& indices = request.inputs[1];
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  const std::size_t inner = axis + indices.type.rank();
  Ints x_strides(y.type.rank(), 0), index_strides(y.type.rank(), 0);
  for (std::size_t i = 0; i < y.type.rank(); ++i) {
    if (i < axis) {
      x_strides[i] = x.layout.strides[i];
    } else if (i < inner) {
      index_strides[i] = indices.layout.strides[i - axis];
    } else {
      x_strides[i] = x.layout.strides[i - inner + axis + 1];
    }
  }
  GatherWalk w;
  w.y = walk(y);
  w.x = Position(y.type.shape, std::move(x_strides));
  w.indices = Position(y.type.shape, std::move(index_strides));
  w.extent = x.type.shape[axis];
  w.stride = x.layout.strides[axis];
  w.wide = indices.type.dtype == DType::int64;
  w.node = request.node_index;
  return w;
}

/// Duplicates are added in y's row-major order.
template <class T>
std::unique_ptr<PreparedKernel> prepare_gather_grad(const KernelRequest& request) {
  return prepared([w = gather_walk(request, request.outputs[0], request.inputs[0]),
                   dx_walk = walk(request.outputs[0])](const KernelArguments& arguments) mutable {
    const T* dy = static_cast<const T*>(arguments.inputs[0]);
    T* dx = static_cast<T*>(arguments.outputs[0]);
    zero_elements(dx, dx_walk, sizeof(T));
    for (std::int64_t i = 0; i < w.y.count(); ++i, w.next()) {
      const std::int64_t index = w.index(arguments.inputs[1], arguments.context);
      if (index < 0) continue;
      T& sum = dx[w.x.at() + index * w.stride];
      sum = stored<T>(scalar::add<Computed<T>>(static_cast<Computed<T>>(sum), dy[w.y.at()]));
    }
  });
}

}  // namespace tandem::reference
