// Picks some of many in their order: tiles are counted, then each block finds how many the tiles
// before its own have, and writes. Select says what is picked and what becomes of it:
//
//   void note(i) const                     for every i below `reach`, in the first stage
//   bool selected(i) const                 pure
//   void emit(i, picked, before, all) const  `before` of those that are picked come before i
//
// What `note` writes, `emit` may read.
#pragma once

#include <cstdint>

#include "kernels/cuda/launching.h"
#include "kernels/shared/block/lanes.h"

namespace tandem::cuda {

inline constexpr int select_threads = 256, select_items = 8;
inline constexpr int select_tile = select_threads * select_items;
/// Every block sums the counts of up to this many tiles; where there are more, they are first
/// summed in segments of that many.
inline constexpr int select_segment = 1024;

template <class Select>
struct CountSelected {
  Select select;
  std::int64_t reach;
  std::int32_t* counts;  // by tile

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    typename Block::template Private<int> count;
    block.each([&](int thread) {
      const std::int64_t first =
          static_cast<std::int64_t>(block.index()) * select_tile + thread * select_items;
      int own = 0;
      for (std::int64_t i = first; i < first + select_items && i < reach; ++i) {
        select.note(i);
        own += select.selected(i) ? 1 : 0;
      }
      count(thread) = own;
    });
    const int all = block.sum(count);
    block.one([&] { counts[block.index()] = all; });
  }
};

/// counts[t] becomes the count of the tiles before it in its segment, sums[s] that of a segment.
struct SumSegments {
  std::int32_t* counts;
  std::int64_t tiles;
  std::int64_t* sums;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    typename Block::template Private<int> count;
    const std::int64_t first = static_cast<std::int64_t>(block.index()) * select_segment;
    block.each(
        [&](int thread) { count(thread) = first + thread < tiles ? counts[first + thread] : 0; });
    const int all = scan_block(block, count, block.template shared<int>());
    block.each([&](int thread) {
      if (first + thread < tiles) counts[first + thread] = count(thread);
    });
    block.one([&] { sums[block.index()] = all; });
  }
};

template <class Select>
struct EmitSelected {
  Select select;
  std::int64_t reach, tiles;
  const std::int32_t* counts;
  const std::int64_t* sums;  // by segment; null: there are none

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::int64_t tile = block.index();
    const std::int64_t segments =
        sums == nullptr ? tiles : (tiles + select_segment - 1) / select_segment;
    const std::int64_t own = sums == nullptr ? tile : tile / select_segment;
    typename Block::template Private<std::int64_t> before, all;
    block.each([&](int thread) {
      before(thread) = all(thread) = 0;
      for (std::int64_t s = thread; s < segments; s += block.threads()) {
        const std::int64_t count = sums == nullptr ? counts[s] : sums[s];
        all(thread) += count;
        if (s < own) before(thread) += count;
      }
    });
    const std::int64_t total = block.sum(all);
    const std::int64_t start = block.sum(before) + (sums == nullptr ? 0 : counts[tile]);
    typename Block::template Private<int> count;
    block.each([&](int thread) {
      const std::int64_t first = tile * select_tile + thread * select_items;
      int picked = 0;
      for (std::int64_t i = first; i < first + select_items && i < reach; ++i) {
        picked += select.selected(i) ? 1 : 0;
      }
      count(thread) = picked;
    });
    scan_block(block, count, block.template shared<int>());
    block.each([&](int thread) {
      const std::int64_t first = tile * select_tile + thread * select_items;
      std::int64_t at = start + count(thread);
      for (std::int64_t i = first; i < first + select_items && i < reach; ++i) {
        const bool picked = select.selected(i);
        select.emit(i, picked, at, total);
        at += picked ? 1 : 0;
      }
    });
  }
};

inline std::int64_t select_tiles(std::int64_t reach) {
  return (reach + select_tile - 1) / select_tile;
}
inline std::int64_t select_segments(std::int64_t reach) {
  return (select_tiles(reach) + select_segment - 1) / select_segment;
}
/// The workspace of `select_in_order`.
inline std::size_t select_bytes(std::int64_t reach) {
  return padded(static_cast<std::size_t>(select_tiles(reach)) * sizeof(std::int32_t)) +
         padded(static_cast<std::size_t>(select_segments(reach)) * sizeof(std::int64_t));
}

#if defined(__CUDACC__)
/// All i below `reach`, which is at least 1.
template <class Select>
void select_in_order(GpuContext& gpu, const Select& select, std::int64_t reach, void* workspace,
                     void* queue) {
  const std::int64_t tiles = select_tiles(reach), segments = select_segments(reach);
  auto* const counts = static_cast<std::int32_t*>(workspace);
  auto* const sums = reinterpret_cast<std::int64_t*>(
      static_cast<char*>(workspace) +
      padded(static_cast<std::size_t>(tiles) * sizeof(std::int32_t)));
  const LaunchShape per_tile{.blocks = static_cast<unsigned>(tiles),
                             .threads = select_threads,
                             .shared_bytes = 2 * select_threads * sizeof(int)};
  gpu.launch(launch_of("count selected", per_tile, CountSelected<Select>{select, reach, counts}),
             queue);
  if (segments > 1) {
    const LaunchShape per_segment{.blocks = static_cast<unsigned>(segments),
                                  .threads = select_segment,
                                  .shared_bytes = 2 * select_segment * sizeof(int)};
    gpu.launch(launch_of("sum segments", per_segment, SumSegments{counts, tiles, sums}), queue);
  }
  gpu.launch(
      launch_of("emit selected", per_tile,
                EmitSelected<Select>{select, reach, tiles, counts, segments > 1 ? sums : nullptr}),
      queue);
}
#endif

}  // namespace tandem::cuda
