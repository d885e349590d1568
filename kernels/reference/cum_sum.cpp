// CumSum in every type.
#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

constexpr auto cum_sum = []<class T>(const KernelRequest& request, T) {
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
};

}  // namespace

void add_cum_sum(KernelList& list) {
  list.push_back(number_kernel("reference.cum_sum", "CumSum", cum_sum));
}

}  // namespace tandem::reference
