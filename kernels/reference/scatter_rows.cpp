// ScatterRows in every type.
#include "kernels/reference/checked_index.h"
#include "kernels/shared/scalar.h"

namespace tandem::reference {
namespace {

// f(old, update) is the row's new element.
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

std::unique_ptr<PreparedKernel> scatter_rows(const KernelRequest& request) {
  return with_type(request.inputs[0].type.dtype, [&](auto tag) -> std::unique_ptr<PreparedKernel> {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, bool>) {
      return prepare_scatter_rows<std::uint8_t>(request);
    } else {
      return prepare_scatter_rows<T>(request);
    }
  });
}

}  // namespace

void add_scatter_rows(KernelList& list) {
  list.push_back(reference_kernel("scatter_rows", "ScatterRows", refuse_nothing, scatter_rows));
}

}  // namespace tandem::reference
