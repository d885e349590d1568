// Where the windows of a pooling lie, and the walk over what its kernels write.
#pragma once

#include <limits>

#include "kernels/cuda/launching.h"
#include "kernels/cuda/networks/pooling.h"
#include "kernels/shared/block/each_index.h"
#include "kernels/shared/block/packs.h"

namespace tandem::cuda::networks {

struct Place {
  std::int64_t image, channel;
  int at[3];
};

/// Unit -> place of what a thread writes; `extent` of the written map along the three axes.
struct PlaceWalk {
  std::int64_t units = 0, channels = 1;  // packs of channels
  int extent[3] = {};
  bool channels_inside = false;
  int pack = 1;

  template <class Index>
  TANDEM_HOST_DEVICE Place take_apart(Index rest) const {
    Place place;
    const auto take = [&](auto extent_of) {
      const Index whole = rest / static_cast<Index>(extent_of);
      const Index part = rest - whole * static_cast<Index>(extent_of);
      rest = whole;
      return part;
    };
    if (channels_inside) place.channel = static_cast<std::int64_t>(take(channels)) * pack;
    place.at[2] = static_cast<int>(take(extent[2]));
    place.at[1] = static_cast<int>(take(extent[1]));
    place.at[0] = static_cast<int>(take(extent[0]));
    if (!channels_inside) place.channel = static_cast<std::int64_t>(take(channels));
    place.image = static_cast<std::int64_t>(rest);
    return place;
  }
  TANDEM_HOST_DEVICE Place operator()(std::int64_t unit) const {
    if (units <= 0xffffffff) return take_apart(static_cast<std::uint32_t>(unit));
    return take_apart(static_cast<std::uint64_t>(unit));
  }
};

TANDEM_HOST_DEVICE inline std::int64_t offset_of(const PoolingMap& map, const Place& place) {
  return place.image * map.image + place.channel * map.channel;
}
TANDEM_HOST_DEVICE inline std::int64_t offset_of(const PoolingMap& map, int i, int j, int k) {
  return i * map.axis[0] + j * map.axis[1] + k * map.axis[2];
}
/// The offset of the element at `at`, in the image and channel of `place`.
TANDEM_HOST_DEVICE inline std::int64_t offset_of(const PoolingMap& map, const Place& place,
                                                 const int* at) {
  return offset_of(map, place) + offset_of(map, at[0], at[1], at[2]);
}

/// f(i, j, k, offset) for every tap of window `at` inside x, in order, until f gives false.
template <class F>
TANDEM_HOST_DEVICE inline void for_taps(const Pooling& p, const int* at, const PoolingMap& map,
                                        F f) {
  const PoolingAxis *a = &p.axes[0], *b = &p.axes[1], *c = &p.axes[2];
  for (int r = 0; r < a->window; ++r) {
    const int i = at[0] * a->stride - a->pad_begin + r * a->dilation;
    if (i < 0 || i >= a->in) continue;
    for (int s = 0; s < b->window; ++s) {
      const int j = at[1] * b->stride - b->pad_begin + s * b->dilation;
      if (j < 0 || j >= b->in) continue;
      for (int t = 0; t < c->window; ++t) {
        const int k = at[2] * c->stride - c->pad_begin + t * c->dilation;
        if (k < 0 || k >= c->in) continue;
        if (!f(i, j, k, offset_of(map, i, j, k))) return;
      }
    }
  }
}

/// The window whose tap lies at `position`, or -1.
TANDEM_HOST_DEVICE inline int window_at(const PoolingAxis& axis, int position, int tap) {
  const int start = position + axis.pad_begin - tap * axis.dilation;
  if (start < 0) return -1;
  const int window = start / axis.stride;
  return window * axis.stride == start && window < axis.out ? window : -1;
}

/// f(window) for every window that has a tap at `at`.
template <class F>
TANDEM_HOST_DEVICE inline void for_windows(const Pooling& p, const int* at, F f) {
  int window[3];
  for (int r = 0; r < p.axes[0].window; ++r) {
    window[0] = window_at(p.axes[0], at[0], r);
    if (window[0] < 0) continue;
    for (int s = 0; s < p.axes[1].window; ++s) {
      window[1] = window_at(p.axes[1], at[1], s);
      if (window[1] < 0) continue;
      for (int t = 0; t < p.axes[2].window; ++t) {
        window[2] = window_at(p.axes[2], at[2], t);
        if (window[2] >= 0) f(window);
      }
    }
  }
}

/// How many taps of window `at` lie inside x, or inside x and its padding.
TANDEM_HOST_DEVICE inline float divisor(const Pooling& p, const int* at) {
  float product = 1;
  TANDEM_UNROLL
  for (int n = 0; n < 3; ++n) {
    const PoolingAxis& axis = p.axes[n];
    const int low = p.count_padding ? -axis.pad_begin : 0;
    const int high = axis.in + (p.count_padding ? axis.pad_end : 0);
    int taps = 0;
    for (int k = 0; k < axis.window; ++k) {
      const int i = at[n] * axis.stride - axis.pad_begin + k * axis.dilation;
      taps += i >= low && i < high;
    }
    product *= static_cast<float>(taps);
  }
  return product;
}

template <class N>
TANDEM_HOST_DEVICE inline bool is_nan(N x) {
  return x != x;
}

/// Calls f(place) for the units of the calling thread.
template <class Block, class F>
TANDEM_HOST_DEVICE inline void for_units(Block& block, const PlaceWalk& walk, F f) {
  each_index(block, walk.units, [&](std::int64_t unit) { f(walk(unit)); });
}

inline PlaceWalk walk_of(const Pooling& p, bool over_x, int pack) {
  PlaceWalk walk;
  walk.channels = p.channels / pack;
  walk.units = p.images * walk.channels;
  walk.channels_inside = p.channels_inside;
  walk.pack = pack;
  for (int n = 0; n < 3; ++n) {
    walk.extent[n] = over_x ? p.axes[n].in : p.axes[n].out;
    walk.units *= walk.extent[n];
  }
  return walk;
}

/// Launches the kernel, or nothing where there is nothing to write.
template <class Body>
void launch(GpuContext& gpu, const char* name, const Body& body, void* queue) {
  if (body.walk.units == 0) return;
  gpu.launch(launch_of(name, spread(body.walk.units, gpu.properties.multiprocessors), body), queue);
}

/// Whether all maps can be read and written 16 bytes at a time.
template <class T>
bool packs_fit(const Pooling& p, const PoolingAddresses& at) {
  if (!p.channels_inside || p.channels % full_pack<T> != 0) return false;
  for (const PoolingMap* map : {&p.x, &p.y, &p.dx, &p.dy}) {
    for (const std::int64_t stride : {map->image, map->axis[0], map->axis[1], map->axis[2]}) {
      if (stride % full_pack<T> != 0) return false;
    }
  }
  for (const void* address :
       {at.x, at.y_read, at.dy, static_cast<const void*>(at.y), static_cast<const void*>(at.dx)}) {
    if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0) return false;
  }
  return true;
}

}  // namespace tandem::cuda::networks
