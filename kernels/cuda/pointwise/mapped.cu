// Pad and its gradient, the gradient of Slice, Trilu: copies and sums along axes that are mapped.
#pragma nv_diag_suppress 186  // x < 0 of unsigned integers, in functions of all numbers
#include "kernels/cuda/pointwise/mapped.h"

#include "kernels/cuda/pointwise/pointwise_kernel.h"
#include "kernels/cuda/pointwise/words.h"
#include "kernels/shared/block/each_index.h"

namespace tandem::cuda {
namespace {

// i modulo n, from 0.
TANDEM_HOST_DEVICE std::int64_t wrapped(std::int64_t i, std::int64_t n) {
  const std::int64_t rest = i % n;
  return rest < 0 ? rest + n : rest;
}

TANDEM_HOST_DEVICE std::int64_t source_of(const AxisMap& map, std::int64_t index) {
  std::int64_t i = index - map.start;
  switch (map.kind) {
    case AxisMap::Kind::inside:
      if (map.step != 1) {
        if (i % map.step != 0) return -1;
        i /= map.step;
      }
      return i >= 0 && i < map.extent ? i : -1;
    case AxisMap::Kind::edge:
      return i < 0 ? 0 : i < map.extent ? i : map.extent - 1;
    case AxisMap::Kind::wrap:
      return wrapped(i, map.extent);
    case AxisMap::Kind::reflect:
      break;
  }
  if (map.extent == 1) return 0;
  const std::int64_t turn = 2 * (map.extent - 1), j = wrapped(i, turn);
  return j < map.extent ? j : turn - j;
}

// Index `index` of the axes that are left is `index` of that axis and a rest of the others.
TANDEM_HOST_DEVICE std::int64_t take_axis(const Divisor& extent, bool large, bool first,
                                          std::int64_t& index) {
  if (first) return index;
  if (large) {
    const std::int64_t at = index % extent.extent;
    index /= extent.extent;
    return at;
  }
  std::uint32_t quotient = 0, at = 0;
  extent.split_small(static_cast<std::uint32_t>(index), quotient, at);
  index = quotient;
  return at;
}

template <class Word>
struct MappedCopyKernel {
  MappedCopyArguments p;
  Word border;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    each_index(block, p.units, [&](std::int64_t unit) {
      std::int64_t left = unit, from = 0, to = 0, row = 0, column = 0;
      bool inside = true;
      for (int axis = p.axes - 1; axis >= 0; --axis) {
        const std::int64_t i = take_axis(p.extents[axis], p.large, axis == 0, left);
        const std::int64_t source = source_of(p.maps[axis], i);
        inside = inside && source >= 0;
        from += source * p.from_strides[axis];
        to += i * p.to_strides[axis];
        if (axis == p.row_axis) row = i;
        if (axis == p.column_axis) column = i;
      }
      if (p.column_axis >= 0) {
        inside = inside && (p.upper ? column - row >= p.diagonal : column - row <= p.diagonal);
      }
      const Word* const x = static_cast<const Word*>(p.from);
      Word* const y = static_cast<Word*>(p.to) + to;
      detail::check_access(y, sizeof(Word));
      *y = inside ? x[from] : border;
    });
  }
};

// Up to two arithmetic progressions of indices: `count` in all, the first `first_count` of them
// begin at `first`, the others at `second`.
struct Sources {
  std::int64_t count = 0, first = 0, first_count = 0, second = 0, step = 1;

  TANDEM_HOST_DEVICE std::int64_t operator()(std::int64_t k) const {
    return k < first_count ? first + k * step : second + (k - first_count) * step;
  }
};

// Numbers from `first` on in steps below `whole`.
TANDEM_HOST_DEVICE std::int64_t steps_below(std::int64_t first, std::int64_t step,
                                            std::int64_t whole) {
  return first >= whole ? 0 : (whole - first + step - 1) / step;
}

// All indices of [0, whole) that the map takes to j.
TANDEM_HOST_DEVICE Sources sources_of(const AxisMap& map, std::int64_t j, std::int64_t whole) {
  Sources s;
  const bool all = map.extent == 1 && map.kind != AxisMap::Kind::inside;
  if (all || map.kind == AxisMap::Kind::edge) {
    s.first = j == 0 ? 0 : j + map.start;
    const std::int64_t end = j + 1 == map.extent ? whole : j + map.start + 1;
    s.count = s.first_count = end - s.first;
    return s;
  }
  if (map.kind == AxisMap::Kind::inside) {
    s.first = j * map.step + map.start;
    s.count = s.first_count = 1;
    return s;
  }
  s.step = map.kind == AxisMap::Kind::wrap ? map.extent : 2 * (map.extent - 1);
  s.first = wrapped(map.start + j, s.step);
  s.count = s.first_count = steps_below(s.first, s.step, whole);
  if (map.kind == AxisMap::Kind::reflect && j != 0 && j + 1 != map.extent) {
    s.second = wrapped(map.start - j, s.step);
    s.count += steps_below(s.second, s.step, whole);
  }
  return s;
}

template <class T>
struct MappedSumKernel {
  MappedSumArguments p;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    each_index(block, p.units, [&](std::int64_t unit) {
      std::int64_t to = 0, terms = 1, left = unit;
      for (int axis = p.axes - 1; axis >= 0; --axis) {
        const std::int64_t j = take_axis(p.extents[axis], p.large, axis == 0, left);
        terms *= sources_of(p.maps[axis], j, p.wholes[axis]).count;
        to += j * p.to_strides[axis];
      }
      ComputedType<T> sum = 0;
      for (std::int64_t term = 0; term < terms; ++term) {
        std::int64_t from = 0, rest = term;
        left = unit;
        for (int axis = p.axes - 1; axis >= 0; --axis) {
          const std::int64_t j = take_axis(p.extents[axis], p.large, axis == 0, left);
          const Sources sources = sources_of(p.maps[axis], j, p.wholes[axis]);
          from += sources(rest % sources.count) * p.from_strides[axis];
          rest /= sources.count;
        }
        sum = scalar::add<ComputedType<T>>(sum, widened(static_cast<const T*>(p.from)[from]));
      }
      static_cast<T*>(p.to)[to] = stored<T>(sum);
    });
  }
};

}  // namespace

void launch_mapped_copy(GpuContext& gpu, const MappedCopyArguments& arguments, int word,
                        const LaunchShape& shape, void* queue) {
  with_word(word, [&](auto tag) {
    MappedCopyKernel<decltype(tag)> body{arguments, {}};
    const std::uint64_t twice[2] = {arguments.border, arguments.border};
    std::memcpy(&body.border, twice, sizeof tag);
    gpu.launch(launch_of("mapped_copy", shape, body), queue);
  });
}

void launch_mapped_sum(GpuContext& gpu, const MappedSumArguments& arguments, DType dtype,
                       const LaunchShape& shape, void* queue) {
  with_stored(dtype, [&](auto tag) {
    using T = decltype(tag);
    using Number = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
    const MappedSumKernel<Number> body{arguments};
    gpu.launch(launch_of("mapped_sum", shape, body), queue);
  });
}

}  // namespace tandem::cuda
