// Resize along one axis and its gradient, in float and double.
#include "engine/operators/resize.h"

#include "kernels/reference/support.h"

namespace tandem::reference {
namespace {

template <class T>
std::unique_ptr<PreparedKernel> weighted_sums(const KernelRequest& request, ResizeTaps taps) {
  const Operand &x = request.inputs[0], &y = request.outputs[0];
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  Ints lines = x.layout.strides;
  lines[axis] = 0;
  return prepared([axis, taps = std::move(taps), from = Position(y.type.shape, std::move(lines)),
                   to = walk(y),
                   stride = x.layout.strides[axis]](const KernelArguments& arguments) mutable {
    const T* in = static_cast<const T*>(arguments.inputs[0]);
    T* out = static_cast<T*>(arguments.outputs[0]);
    for (std::int64_t i = 0; i < to.count(); ++i) {
      const auto o = static_cast<std::size_t>(to.index(axis));
      double sum = 0;
      for (std::int64_t k = taps.firsts[o]; k < taps.firsts[o + 1]; ++k) {
        const auto tap = static_cast<std::size_t>(k);
        sum += taps.weights[tap] * static_cast<double>(in[from.at() + taps.sources[tap] * stride]);
      }
      out[to.at()] = static_cast<T>(sum);
      from.next();
      to.next();
    }
  });
}

std::unique_ptr<PreparedKernel> resize(const KernelRequest& request) {
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  return with_main_type(request.inputs[0].type.dtype, [&](auto tag) {
    const std::int64_t extent = request.inputs[0].type.shape[axis];
    return weighted_sums<decltype(tag)>(request, resize_taps(request.attributes(), extent));
  });
}

std::unique_ptr<PreparedKernel> resize_grad(const KernelRequest& request) {
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  return with_main_type(request.inputs[0].type.dtype, [&](auto tag) {
    const std::int64_t extent = request.outputs[0].type.shape[axis];
    return weighted_sums<decltype(tag)>(
        request, transposed(resize_taps(request.attributes(), extent), extent));
  });
}

}  // namespace

void add_resize(KernelList& list) {
  list.push_back(reference_kernel("resize", "Resize", refuse_other_types<0>, resize));
  list.push_back(reference_kernel("resize_grad", "ResizeGrad", refuse_other_types<0>, resize_grad));
}

}  // namespace tandem::reference
