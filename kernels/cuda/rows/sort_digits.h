// The passes of a stable sort of (key, position) pairs by eight bits of the key. A tile of pairs
// belongs to a block, a run of them to each of its warps; lanes that hold the same digit know each
// other (match_lanes), so that each pair's rank comes without atomic operations.
#pragma once

#include <cstdint>

#include "kernels/cuda/updates/floats.h"
#include "kernels/shared/block/lanes.h"

namespace tandem::cuda {

inline constexpr int digits = 256, digit_bits = 8;
inline constexpr int sort_threads = 256, sort_items = 8;
inline constexpr int sort_warps = sort_threads / 32;
inline constexpr int sort_tile = sort_threads * sort_items;
/// Tiles whose counts every block sums; where there are more, segments of that many are summed
/// first.
inline constexpr int sort_segment = 64;

template <class T, int n>
struct Items {
  T at[n];
};

/// Item j of a thread, within its block's pairs: warps have runs, lanes lie side by side in them.
template <int items>
TANDEM_HOST_DEVICE inline int item_place(int thread, int j) {
  return thread / 32 * 32 * items + j * 32 + thread % 32;
}

/// Ranks pairs among those of the same digit in their warp, and counts them: counters [warps,
/// digits], cleared, in shared memory. Keys of places from `size` on do not count. Lanes of a warp
/// are in step when it ends; a barrier has to follow.
template <class Counter, class Key, int items, class Block>
TANDEM_HOST_DEVICE void rank_items(const Block& block,
                                   const typename Block::template Private<Items<Key, items>>& keys,
                                   int shift, int size, Counter* counters,
                                   typename Block::template Private<Items<int, items>>& ranks) {
  typename Block::template Private<std::uint32_t> digit, lanes;
  TANDEM_UNROLL
  for (int j = 0; j < items; ++j) {
    block.each([&](int thread) {
      const bool counts = item_place<items>(thread, j) < size;
      digit(thread) = counts ? static_cast<std::uint32_t>(keys(thread).at[j] >> shift) & 255u : 256;
    });
    match_lanes(block, digit, lanes);
    block.each([&](int thread) {
      if (digit(thread) == 256) return;
      const std::uint32_t before = lanes(thread) & ((1u << (thread % 32)) - 1);
      ranks(thread).at[j] =
          counters[thread / 32 * digits + static_cast<int>(digit(thread))] + count_bits(before);
    });
    sync_lanes(block);
    block.each([&](int thread) {
      const bool is_first = (lanes(thread) & ((1u << (thread % 32)) - 1)) == 0;
      if (digit(thread) == 256 || !is_first) return;
      Counter& counter = counters[thread / 32 * digits + static_cast<int>(digit(thread))];
      counter = static_cast<Counter>(counter + count_bits(lanes(thread)));
    });
    sync_lanes(block);
  }
}

/// counts[tile, digit] of the tile's keys. Source: `key(i)`.
template <class Key, class Source>
struct CountDigits {
  Source source;
  std::int64_t count;
  int shift;
  std::int32_t* counts;
  static constexpr std::size_t shared_bytes = sort_warps * digits * sizeof(std::int32_t);

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    auto* const counters = block.template shared<std::int32_t>();
    typename Block::template Private<Items<Key, sort_items>> keys;
    typename Block::template Private<Items<int, sort_items>> ranks;
    const std::int64_t first = static_cast<std::int64_t>(block.index()) * sort_tile;
    const auto size = static_cast<int>(count - first < sort_tile ? count - first : sort_tile);
    block.each([&](int thread) {
      for (int i = thread; i < sort_warps * digits; i += sort_threads) counters[i] = 0;
      TANDEM_UNROLL
      for (int j = 0; j < sort_items; ++j) {
        const int place = item_place<sort_items>(thread, j);
        keys(thread).at[j] = place < size ? source.key(first + place) : Key{0};
      }
    });
    block.sync();
    rank_items<std::int32_t, Key, sort_items>(block, keys, shift, size, counters, ranks);
    block.sync();
    block.each([&](int thread) {
      std::int32_t all = 0;
      for (int warp = 0; warp < sort_warps; ++warp) all += counters[warp * digits + thread];
      counts[static_cast<std::int64_t>(block.index()) * digits + thread] = all;
    });
  }
};

/// counts[tile, digit] becomes the count of the tiles before it in its segment, segments[s, digit]
/// that of a segment.
struct SumDigits {
  std::int32_t* counts;
  std::int64_t tiles;
  std::int32_t* segments;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::int64_t first = static_cast<std::int64_t>(block.index()) * sort_segment;
    const std::int64_t end = first + sort_segment < tiles ? first + sort_segment : tiles;
    block.each([&](int digit) {
      std::int32_t all = 0;
      for (std::int64_t tile = first; tile < end; ++tile) {
        std::int32_t& count = counts[tile * digits + digit];
        const std::int32_t own = count;
        count = all;
        all += own;
      }
      segments[static_cast<std::int64_t>(block.index()) * digits + digit] = all;
    });
  }
};

/// Moves each pair to its place by one digit.
template <class Key>
struct ScatterDigits {
  const Key* keys;
  const std::int32_t* positions;  // null: each pair's own place
  Key* to_keys;
  std::int32_t* to_positions;
  std::int64_t count, tiles;
  int shift;
  const std::int32_t* counts;
  const std::int32_t* segments;  // null: counts are of single tiles
  static constexpr std::size_t shared_bytes =
      sort_warps * digits * sizeof(std::int32_t) + 2 * sort_threads * sizeof(int);

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    auto* const counters = block.template shared<std::int32_t>();
    int* const scratch = block.template shared<int>(sort_warps * digits * sizeof(std::int32_t));
    typename Block::template Private<Items<Key, sort_items>> own;
    typename Block::template Private<Items<int, sort_items>> ranks;
    typename Block::template Private<int> before, starts;
    const std::int64_t tile = block.index(), first = tile * sort_tile;
    const auto size = static_cast<int>(count - first < sort_tile ? count - first : sort_tile);
    block.each([&](int thread) {
      for (int i = thread; i < sort_warps * digits; i += sort_threads) counters[i] = 0;
      TANDEM_UNROLL
      for (int j = 0; j < sort_items; ++j) {
        const int place = item_place<sort_items>(thread, j);
        own(thread).at[j] = place < size ? keys[first + place] : Key{0};
      }
      sum_counts(tile, thread, before(thread), starts(thread));
    });
    scan_block(block, starts, scratch);  // where each digit's pairs begin
    rank_items<std::int32_t, Key, sort_items>(block, own, shift, size, counters, ranks);
    block.sync();
    block.each([&](int digit) {
      std::int32_t at = starts(digit) + before(digit);
      for (int warp = 0; warp < sort_warps; ++warp) {
        std::int32_t& counter = counters[warp * digits + digit];
        const std::int32_t in_warp = counter;
        counter = at;
        at += in_warp;
      }
    });
    block.sync();
    block.each([&](int thread) {
      TANDEM_UNROLL
      for (int j = 0; j < sort_items; ++j) {
        const int place = item_place<sort_items>(thread, j);
        if (place >= size) continue;
        const Key key = own(thread).at[j];
        const int digit = static_cast<int>(key >> shift & 255u);
        const std::int64_t to = counters[thread / 32 * digits + digit] + ranks(thread).at[j];
        to_keys[to] = key;
        to_positions[to] = positions == nullptr ? static_cast<std::int32_t>(first + place)
                                                : positions[first + place];
      }
    });
  }

  /// The number of pairs with the digit: in the tiles before this one, and in all.
  TANDEM_HOST_DEVICE void sum_counts(std::int64_t tile, int digit, int& before, int& all) const {
    const std::int64_t own = segments == nullptr ? tile : tile / sort_segment;
    const std::int64_t parts =
        segments == nullptr ? tiles : (tiles + sort_segment - 1) / sort_segment;
    const std::int32_t* const from = segments == nullptr ? counts : segments;
    before = all = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int32_t here = from[part * digits + digit];
      all += here;
      if (part < own) before += here;
    }
    if (segments != nullptr) before += counts[tile * digits + digit];
  }
};

}  // namespace tandem::cuda
