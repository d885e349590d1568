// The gradients of MaxPool and AveragePool. A thread gathers over the windows that hold its
// element, so that nothing is added by two threads.
#include "kernels/cuda/networks/pooling_windows.h"

namespace tandem::cuda {
namespace {

using namespace networks;

/// dx = the sum of dy over the windows in which this element is the first that equals y.
template <class T, int pack>
struct MaximumGradientBody {
  Pooling p;
  PlaceWalk walk;
  const T *x, *y, *dy;
  T* dx;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    for_units(block, walk, [&](const Place& place) {
      const T* map = x + offset_of(p.x, place);
      const std::int64_t own = offset_of(p.x, place.at[0], place.at[1], place.at[2]);
      float mine[pack], sums[pack];
      load_pack<pack>(map + own, mine);
      TANDEM_UNROLL
      for (int e = 0; e < pack; ++e) sums[e] = 0;
      for_windows(p, place.at, [&](const int* window) {
        float largest[pack];
        load_pack<pack>(y + offset_of(p.y, place, window), largest);
        const auto hits = [&](const float* values) {
          unsigned bits = 0;
          TANDEM_UNROLL
          for (int e = 0; e < pack; ++e) {
            const bool equal = values[e] == largest[e] || (is_nan(values[e]) && is_nan(largest[e]));
            bits |= static_cast<unsigned>(equal) << e;
          }
          return bits;
        };
        unsigned wins = hits(mine);
        if (wins == 0) return;
        for_taps(p, window, p.x, [&](int, int, int, std::int64_t offset) {
          if (offset == own) return false;
          float values[pack];
          load_pack<pack>(map + offset, values);
          wins &= ~hits(values);
          return wins != 0;
        });
        if (wins == 0) return;
        float gradient[pack];
        load_pack<pack>(dy + offset_of(p.dy, place, window), gradient);
        TANDEM_UNROLL
        for (int e = 0; e < pack; ++e) sums[e] += (wins >> e & 1u) != 0 ? gradient[e] : 0.0f;
      });
      store_pack<pack>(dx + offset_of(p.dx, place, place.at), sums);
    });
  }
};

template <class T, int pack>
struct AverageGradientBody {
  Pooling p;
  PlaceWalk walk;
  const T* dy;
  T* dx;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    for_units(block, walk, [&](const Place& place) {
      float sums[pack];
      TANDEM_UNROLL
      for (int e = 0; e < pack; ++e) sums[e] = 0;
      for_windows(p, place.at, [&](const int* window) {
        float gradient[pack];
        load_pack<pack>(dy + offset_of(p.dy, place, window), gradient);
        const float count = divisor(p, window);
        TANDEM_UNROLL
        for (int e = 0; e < pack; ++e) sums[e] += gradient[e] / count;
      });
      store_pack<pack>(dx + offset_of(p.dx, place, place.at), sums);
    });
  }
};

template <class T, int pack>
void run(GpuContext& gpu, const Pooling& p, const PoolingAddresses& at, void* queue) {
  const PlaceWalk walk = walk_of(p, true, pack);
  const T* dy = static_cast<const T*>(at.dy);
  T* dx = static_cast<T*>(at.dx);
  if (p.kind == PoolingKind::maximum_gradient) {
    const T *x = static_cast<const T*>(at.x), *y = static_cast<const T*>(at.y_read);
    launch(gpu, "max_pool_grad", MaximumGradientBody<T, pack>{p, walk, x, y, dy, dx}, queue);
  } else {
    launch(gpu, "average_pool_grad", AverageGradientBody<T, pack>{p, walk, dy, dx}, queue);
  }
}

}  // namespace

void run_pooling_gradient(GpuContext& gpu, const Pooling& pooling, const PoolingAddresses& at,
                          void* queue) {
  with_float(pooling.dtype, [&](auto tag) {
    using T = decltype(tag);
    if (packs_fit<T>(pooling, at)) {
      run<T, full_pack<T>>(gpu, pooling, at, queue);
    } else {
      run<T, 1>(gpu, pooling, at, queue);
    }
  });
}

}  // namespace tandem::cuda
