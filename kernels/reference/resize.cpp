// Resize along one axis and its gradient, in float and double.
#include "engine/operators/resize.h"

#include "kernels/reference/network_support.h"

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

}  // namespace

void add_resize(KernelList& list) {
  list.push_back(float_kernel("reference.resize", "Resize", [](const KernelRequest& r, auto tag) {
    const auto axis = static_cast<std::size_t>(r.attributes().integer("axis"));
    const std::int64_t extent = r.inputs[0].type.shape[axis];
    return weighted_sums<decltype(tag)>(r, resize_taps(r.attributes(), extent));
  }));
  list.push_back(
      float_kernel("reference.resize_grad", "ResizeGrad", [](const KernelRequest& r, auto tag) {
        const auto axis = static_cast<std::size_t>(r.attributes().integer("axis"));
        const std::int64_t extent = r.outputs[0].type.shape[axis];
        return weighted_sums<decltype(tag)>(
            r, transposed(resize_taps(r.attributes(), extent), extent));
      }));
}

}  // namespace tandem::reference
