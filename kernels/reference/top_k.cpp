// TopK in every type.
#include <algorithm>
#include <numeric>

#include "kernels/reference/network_support.h"

namespace tandem::reference {
namespace {

// Whether a comes before b among the largest (smallest): NaN counts as the largest number.
template <class C>
bool comes_first(C a, C b, bool largest) {
  const bool a_is_nan = a != a, b_is_nan = b != b;
  if (a_is_nan || b_is_nan) return largest ? a_is_nan && !b_is_nan : b_is_nan && !a_is_nan;
  return largest ? a > b : a < b;
}

constexpr auto top_k = []<class T>(const KernelRequest& request, T) {
  const Operand &x = request.inputs[0], &values = request.outputs[0], &places = request.outputs[1];
  const auto axis = static_cast<std::size_t>(request.attributes().integer("axis"));
  const std::int64_t k = request.attributes().integer("k"), length = x.type.shape[axis];
  Shape lines = values.type.shape;
  lines[axis] = k > 0 ? 1 : 0;
  const auto strides_of = [&](const Operand& operand) {
    return operand.present ? operand.layout.strides : row_major(operand.type.shape).strides;
  };
  return prepared([=, largest = request.attributes().flag("largest"),
                   from = Position(lines, x.layout.strides),
                   to = Position(lines, strides_of(values)),
                   place = Position(lines, strides_of(places)), x_stride = x.layout.strides[axis],
                   y_stride = strides_of(values)[axis], place_stride = strides_of(places)[axis],
                   order = std::vector<std::int64_t>(static_cast<std::size_t>(length))](
                      const KernelArguments& arguments) mutable {
    const T* in = static_cast<const T*>(arguments.inputs[0]);
    T* y = static_cast<T*>(arguments.outputs[0]);
    std::int64_t* indices = static_cast<std::int64_t*>(arguments.outputs[1]);
    for (std::int64_t line = 0; line < from.count(); ++line) {
      const auto element = [&](std::int64_t i) {
        return static_cast<Computed<T>>(in[from.at() + i * x_stride]);
      };
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        if (comes_first(element(a), element(b), largest)) return true;
        return !comes_first(element(b), element(a), largest) && a < b;
      });
      for (std::int64_t i = 0; i < k; ++i) {
        const std::int64_t taken = order[static_cast<std::size_t>(i)];
        if (y != nullptr) y[to.at() + i * y_stride] = in[from.at() + taken * x_stride];
        if (indices != nullptr) indices[place.at() + i * place_stride] = taken;
      }
      from.next();
      to.next();
      place.next();
    }
  });
};

}  // namespace

void add_top_k(KernelList& list) {
  list.push_back(number_kernel("reference.top_k", "TopK", top_k));
}

}  // namespace tandem::reference
