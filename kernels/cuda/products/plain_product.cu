// Products by plain sums, one thread for an element of y: of integers and float64, which are rare
// in training, and of what cuBLASLt has no algorithm for.
#include <type_traits>

#include "kernels/cuda/launching.h"
#include "kernels/cuda/products/own_kernels.h"
#include "kernels/shared/block/each_index.h"
#include "kernels/shared/block/packs.h"

namespace tandem::cuda {
namespace {

template <class T>
struct PlainProduct {
  static constexpr bool scaled = is_floating<T>;
  using Computed = ComputedType<T>;
  using Sum = std::conditional_t<std::is_floating_point_v<Computed>, Computed, std::uint64_t>;
  const T* a;
  const T* b;
  const T* c;
  T* y;
  float alpha;
  const float* scales;
  std::int64_t count, m, n, k;  // count: elements of y
  std::int64_t a_m, a_k, b_k, b_n, y_m, y_n;
  BatchAxis axes[most_plain_axes];
  int axis_count;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    each_index(block, count, [&](std::int64_t i) {
      const std::int64_t column = i % n, row = i / n % m;
      const T* left = a + row * a_m;
      const T* right = b + column * b_n;
      std::int64_t to = row * y_m + column * y_n;
      std::int64_t matrix = i / n / m;
      for (int axis = axis_count; axis-- > 0;) {
        const std::int64_t index = matrix % axes[axis].extent;
        matrix /= axes[axis].extent;
        left += index * axes[axis].a;
        right += index * axes[axis].b;
        to += index * axes[axis].y;
      }
      Sum sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += static_cast<Sum>(widened(left[l * a_k])) * static_cast<Sum>(widened(right[l * b_k]));
      }
      if constexpr (scaled) {
        sum *= scales == nullptr ? alpha : *scales;
        if (c != nullptr) sum += widened(c[to]);
      }
      y[to] = stored<T>(static_cast<Computed>(sum));
    });
  }
};

template <class T>
void multiply(GpuContext& gpu, const Product& p, const PlainArguments& x, void* queue) {
  PlainProduct<T> body{static_cast<const T*>(x.a),
                       static_cast<const T*>(x.b),
                       static_cast<const T*>(x.c),
                       static_cast<T*>(x.y),
                       x.alpha,
                       x.scales,
                       p.count() * p.m * p.n,
                       p.m,
                       p.n,
                       p.k,
                       p.a_m,
                       p.a_k,
                       p.b_k,
                       p.b_n,
                       p.y_m,
                       p.y_n,
                       {},
                       0};
  for (const BatchAxis& axis : p.axes) body.axes[body.axis_count++] = axis;
  const LaunchShape shape = spread(body.count, gpu.properties.multiprocessors, 128);
  gpu.launch(launch_of("plain_product", shape, body), queue);
}

}  // namespace

void plain_product(GpuContext& gpu, const Product& product, DType dtype,
                   const PlainArguments& arguments, void* queue) noexcept {
  if (product.count() * product.m * product.n == 0) return;
  if (is_gpu_float(dtype)) {
    return with_float(dtype,
                      [&](auto tag) { multiply<decltype(tag)>(gpu, product, arguments, queue); });
  }
  with_type(integer_types + TypeList<double>{}, dtype,
            [&](auto tag) { multiply<decltype(tag)>(gpu, product, arguments, queue); });
}

}  // namespace tandem::cuda
