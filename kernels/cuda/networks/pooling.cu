// MaxPool and AveragePool. A thread writes one element, or as many neighbouring channels as fit
// into 16 bytes.
#include "kernels/cuda/networks/pooling_windows.h"

namespace tandem::cuda {
namespace {

using namespace networks;

template <class T>
inline constexpr ComputedType<T> lowest = std::numeric_limits<ComputedType<T>>::has_infinity
                                              ? -std::numeric_limits<ComputedType<T>>::infinity()
                                              : std::numeric_limits<ComputedType<T>>::lowest();

/// The first largest element of a window; a NaN wins.
template <class T, int pack>
struct MaximumBody {
  Pooling p;
  PlaceWalk walk;
  const T* x;
  T* y;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    for_units(block, walk, [&](const Place& place) {
      const T* map = x + offset_of(p.x, place);
      ComputedType<T> best[pack];
      TANDEM_UNROLL
      for (int e = 0; e < pack; ++e) best[e] = lowest<T>;
      for_taps(p, place.at, p.x, [&](int, int, int, std::int64_t offset) {
        ComputedType<T> values[pack];
        load_pack<pack>(map + offset, values);
        TANDEM_UNROLL
        for (int e = 0; e < pack; ++e) {
          if (values[e] > best[e] || is_nan(values[e])) best[e] = values[e];
        }
        return true;
      });
      store_pack<pack>(y + offset_of(p.y, place, place.at), best);
    });
  }
};

/// Like MaximumBody, but also gives the element's index in x as if x were row-major.
template <class T>
struct IndexedMaximumBody {
  Pooling p;
  PlaceWalk walk;
  const T* x;
  T* y;  // null: not wanted
  std::int64_t* indices;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    for_units(block, walk, [&](const Place& place) {
      const T* map = x + offset_of(p.x, place);
      ComputedType<T> best = lowest<T>;
      bool found = false;
      int at[3] = {};
      for_taps(p, place.at, p.x, [&](int i, int j, int k, std::int64_t offset) {
        ComputedType<T> value;
        load_pack<1>(map + offset, &value);
        if (!found || value > best || (is_nan(value) && !is_nan(best))) {
          best = value;
          at[0] = i, at[1] = j, at[2] = k;
          found = true;
        }
        return true;
      });
      const std::int64_t e0 = p.axes[0].in, e1 = p.axes[1].in, e2 = p.axes[2].in;
      const std::int64_t flat =
          p.column_major ? at[0] + e0 * (at[1] + e1 * at[2]) : (at[0] * e1 + at[1]) * e2 + at[2];
      const int* to = place.at;
      indices[offset_of(p.indices, place, to)] =
          (place.image * p.channels + place.channel) * e0 * e1 * e2 + flat;
      if (y != nullptr) {
        store_pack<1>(y + offset_of(p.y, place, to), &best);
      }
    });
  }
};

template <class T, int pack>
struct AverageBody {
  Pooling p;
  PlaceWalk walk;
  const T* x;
  T* y;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    for_units(block, walk, [&](const Place& place) {
      const T* map = x + offset_of(p.x, place);
      float sums[pack];
      TANDEM_UNROLL
      for (int e = 0; e < pack; ++e) sums[e] = 0;
      for_taps(p, place.at, p.x, [&](int, int, int, std::int64_t offset) {
        float values[pack];
        load_pack<pack>(map + offset, values);
        TANDEM_UNROLL
        for (int e = 0; e < pack; ++e) sums[e] += values[e];
        return true;
      });
      const float count = divisor(p, place.at);
      TANDEM_UNROLL
      for (int e = 0; e < pack; ++e) sums[e] = count > 0 ? sums[e] / count : 0.0f;
      store_pack<pack>(y + offset_of(p.y, place, place.at), sums);
    });
  }
};

template <class T, int pack>
void run(GpuContext& gpu, const Pooling& p, const PoolingAddresses& at, void* queue) {
  const PlaceWalk walk = walk_of(p, false, pack);
  const T* x = static_cast<const T*>(at.x);
  T* y = static_cast<T*>(at.y);
  if (p.kind == PoolingKind::maximum) {
    launch(gpu, "max_pool", MaximumBody<T, pack>{p, walk, x, y}, queue);
  } else if constexpr (is_floating<T>) {
    launch(gpu, "average_pool", AverageBody<T, pack>{p, walk, x, y}, queue);
  }
}

template <class T>
void run(GpuContext& gpu, const Pooling& p, const PoolingAddresses& at, void* queue) {
  if (at.indices != nullptr) {
    launch(gpu, "max_pool_indices",
           IndexedMaximumBody<T>{p, walk_of(p, false, 1), static_cast<const T*>(at.x),
                                 static_cast<T*>(at.y), at.indices},
           queue);
  } else if (packs_fit<T>(p, at)) {
    run<T, full_pack<T>>(gpu, p, at, queue);
  } else {
    run<T, 1>(gpu, p, at, queue);
  }
}

}  // namespace

void run_pooling(GpuContext& gpu, const Pooling& pooling, const PoolingAddresses& at, void* queue) {
  if (pooling.kind == PoolingKind::maximum_gradient ||
      pooling.kind == PoolingKind::average_gradient) {
    return run_pooling_gradient(gpu, pooling, at, queue);
  }
  if (pooling.dtype == DType::int8) return run<std::int8_t>(gpu, pooling, at, queue);
  if (pooling.dtype == DType::uint8) return run<std::uint8_t>(gpu, pooling, at, queue);
  with_float(pooling.dtype, [&](auto tag) { run<decltype(tag)>(gpu, pooling, at, queue); });
}

}  // namespace tandem::cuda
