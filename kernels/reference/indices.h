// ScatterRows and CumSum: templates that every element type shares.
#pragma once

#include "engine/operators/tables/rows.h"
#include "kernels/reference/support.h"
#include "kernels/shared/scalar.h"

namespace tandem::reference {

/// An index into `extent` elements as Gather has it: -1 for an absent one; one that is out of range
/// is reported and clamped.
inline std::int64_t checked_index(const void* indices, std::int64_t place, DType dtype,
                                  std::int64_t extent, std::int32_t node,
                                  const StepContext* context) {
  const std::int64_t given = dtype == DType::int64
                                 ? static_cast<const std::int64_t*>(indices)[place]
                                 : static_cast<const std::int32_t*>(indices)[place];
  if (given == absent_id_of(dtype)) return -1;
  const std::int64_t index = given < 0 ? given + extent : given;
  if (index >= 0 && index < extent) return index;
  if (context != nullptr && context->error != nullptr) {
    context->error->report(ErrorWord::index_out_of_range, node, given);
  }
  return index < 0 ? 0 : extent - 1;
}

/// f(old, update) is the row's new element.
template <class T, class F>
std::unique_ptr<PreparedKernel> prepare_scatter(const KernelRequest& request, F f) {
  const Operand &x = request.inputs[0], &indices = request.inputs[1], &y = request.outputs[0];
  Shape row_shape(x.type.shape.begin() + 1, x.type.shape.end());
  const auto row = [&](const Operand& of) {
    return Position(row_shape, Ints(of.layout.strides.begin() + 1, of.layout.strides.end()));
  };
  return prepared([=, x_walk = walk(x), y_walk = walk(y), from = row(request.inputs[2]),
                   to = row(y), node = request.node_index, dtype = indices.type.dtype,
                   count = indices.type.elements(), extent = x.type.shape[0],
                   index_stride = indices.layout.strides[0],
                   update_stride = request.inputs[2].layout.strides[0],
                   row_stride = y.layout.strides[0]](const KernelArguments& arguments) mutable {
    const T* updates = static_cast<const T*>(arguments.inputs[2]);
    T* result = static_cast<T*>(arguments.outputs[0]);
    copy_elements(arguments.inputs[0], x_walk, result, y_walk, sizeof(T));
    for (std::int64_t m = 0; m < count; ++m) {
      const std::int64_t index = checked_index(arguments.inputs[1], m * index_stride, dtype, extent,
                                               node, arguments.context);
      if (index < 0) continue;
      for (std::int64_t i = 0; i < to.count(); ++i, to.next(), from.next()) {
        T& element = result[index * row_stride + to.at()];
        element = stored<T>(f(static_cast<Computed<T>>(element),
                              static_cast<Computed<T>>(updates[m * update_stride + from.at()])));
      }
    }
  });
}

template <class T>
std::unique_ptr<PreparedKernel> prepare_scatter_rows(const KernelRequest& request) {
  using C = Computed<T>;
  const std::string& reduction = request.attributes().text("reduction");
  if (reduction == "add") {
    return prepare_scatter<T>(request, [](C a, C b) { return scalar::add<C>(a, b); });
  }
  if (reduction == "mul") {
    return prepare_scatter<T>(request, [](C a, C b) { return scalar::mul<C>(a, b); });
  }
  if (reduction == "max") {
    return prepare_scatter<T>(request, [](C a, C b) { return scalar::maximum<C>(a, b); });
  }
  if (reduction == "min") {
    return prepare_scatter<T>(request, [](C a, C b) { return scalar::minimum<C>(a, b); });
  }
  return prepare_scatter<T>(request, [](C, C b) { return b; });
}

template <class T>
std::unique_ptr<PreparedKernel> prepare_cum_sum(const KernelRequest& request) {
  const Operand &x = request.inputs[0], &y = request.outputs[0];
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  const bool exclusive = request.attributes().flag("exclusive");
  const bool reverse = request.attributes().flag("reverse");
  Shape lines = x.type.shape;
  const std::int64_t length = lines[axis];
  lines[axis] = length > 0 ? 1 : 0;
  return prepared([=, from = Position(lines, x.layout.strides),
                   to = Position(lines, y.layout.strides), x_stride = x.layout.strides[axis],
                   y_stride = y.layout.strides[axis]](const KernelArguments& arguments) mutable {
    const T* in = static_cast<const T*>(arguments.inputs[0]);
    T* out = static_cast<T*>(arguments.outputs[0]);
    for (std::int64_t line = 0; line < to.count(); ++line, from.next(), to.next()) {
      Accumulator<T> sum = 0;
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t at = reverse ? length - 1 - i : i;
        const Accumulator<T> before = sum;
        sum += widened(in[from.at() + at * x_stride]);
        out[to.at() + at * y_stride] = narrowed<T>(exclusive ? before : sum);
      }
    }
  });
}

/// Whether a comes before b among the largest (smallest): NaN counts as the largest number.
template <class C>
bool comes_first(C a, C b, bool largest) {
  const bool a_is_nan = a != a, b_is_nan = b != b;
  if (a_is_nan || b_is_nan) return largest ? a_is_nan && !b_is_nan : b_is_nan && !a_is_nan;
  return largest ? a > b : a < b;
}

}  // namespace tandem::reference
