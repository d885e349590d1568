// Rows of contiguous elements shared by teams of threads: groups of up to 32, or a whole block. A
// row passes in tiles that the team holds in registers.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/cuda/launching.h"
#include "kernels/cuda/reductions/elements.h"

namespace tandem::cuda::reductions {

/// The rows of a tensor, and how teams share them.
struct Rows {
  std::int64_t count = 0, length = 0;
  int team = 32;  // threads of a row

  /// Elements of a tile of `size` that begins at `start`.
  TANDEM_HOST_DEVICE int left(std::int64_t start, int size) const {
    return length - start < size ? static_cast<int>(length - start) : size;
  }
};

/// The most threads of a block that `shape_of_rows` launches.
constexpr int row_threads(bool whole) { return whole ? 512 : 256; }

/// How rows of some length are launched.
struct RowShape {
  /// What a thread holds of a row: 8 numbers, `group_values` or `block_values`. Of the last kind a
  /// team is a block, and a row may take many tiles.
  enum Kind { few, group, block };

  Kind kind = few;
  LaunchShape launch;
  int team = 32;
};

inline int power_of_two_from(std::int64_t least) {
  int power = 1;
  while (power < least) power *= 2;
  return power;
}

template <int group_values, int block_values>
RowShape shape_of_rows(std::int64_t count, std::int64_t length, int multiprocessors) {
  RowShape shape;
  std::int64_t rows_of_block = 1;
  if (length > 32 * std::int64_t{group_values}) {
    shape.kind = RowShape::block;
    const std::int64_t threads = (length + block_values - 1) / block_values;
    shape.launch.threads = threads <= 128 ? 128 : threads <= 256 ? 256 : row_threads(true);
    shape.team = static_cast<int>(shape.launch.threads);
  } else {
    shape.kind = length <= 32 * 8 ? RowShape::few : RowShape::group;
    shape.team = shape.kind == RowShape::few ? power_of_two_from((length + 7) / 8) : 32;
    shape.launch.threads = row_threads(false);
    rows_of_block = 256 / shape.team;
  }
  shape.launch.blocks = blocks_for(multiprocessors, count, rows_of_block,
                                   static_cast<int>(2048 / shape.launch.threads));
  return shape;
}

/// The column, counted from the tile's start, of a thread's number i.
template <int pack>
TANDEM_HOST_DEVICE inline int column_of(int i, int member, int team) {
  return (i / pack * team + member) * pack + i % pack;
}

/// `values` numbers of a row from `from` on, of which `left` are there: packs in turn for each
/// member of the team. `rest` replaces those that are not.
template <int pack, int values, class T>
TANDEM_HOST_DEVICE inline void load_tile(const T* from, int left, int member, int team, float rest,
                                         Registers<values>& to) {
  TANDEM_UNROLL
  for (int k = 0; k < values / pack; ++k) {
    const int column = column_of<pack>(k * pack, member, team);
    if (column < left) {
      load_pack<pack>(from + column, to.values + k * pack);
    } else {
      TANDEM_UNROLL
      for (int i = 0; i < pack; ++i) to.values[k * pack + i] = rest;
    }
  }
}

template <int pack, int values, class T>
TANDEM_HOST_DEVICE inline void store_tile(T* to, int left, int member, int team,
                                          const Registers<values>& from) {
  TANDEM_UNROLL
  for (int k = 0; k < values / pack; ++k) {
    const int column = column_of<pack>(k * pack, member, team);
    if (column < left) store_pack<pack>(to + column, from.values + k * pack);
  }
}

/// The numbers of each team as one, in all its threads. `Values` is a Private of the block.
template <bool whole, class Block, class Values, class Combine>
TANDEM_HOST_DEVICE inline Values combined(Block& block, const Values& values, int team,
                                          Combine combine) {
  if constexpr (whole) {
    const auto all = block.reduce(values, combine);
    Values result;
    block.each([&](int thread) { result(thread) = all; });
    return result;
  } else {
    return block.reduce_groups(values, team, combine);
  }
}

/// Calls f(pack, values, whole) with a kernel's choices as integral constants; `packs`: accesses of
/// 16 bytes.
template <class T, int group_values, int block_values, class F>
void with_row_kernel(bool packs, RowShape::Kind kind, F&& f) {
  const auto choose = [&](auto pack) {
    using std::integral_constant;
    if (kind == RowShape::few) {
      f(pack, integral_constant<int, 8>{}, std::false_type{});
    } else if (kind == RowShape::group) {
      f(pack, integral_constant<int, group_values>{}, std::false_type{});
    } else {
      f(pack, integral_constant<int, block_values>{}, std::true_type{});
    }
  };
  if (packs) {
    choose(std::integral_constant<int, full_pack<T>>{});
  } else {
    choose(std::integral_constant<int, 1>{});
  }
}

}  // namespace tandem::cuda::reductions
