// Sums of the gradients of each row, passed to what uses them: an update of the row, a store, a sum
// of squares. Neighbouring threads share a row. Rows with many positions would keep a few threads
// busy while all others are done: their positions are cut into chunks, which are summed in parallel
// and then added up by one block a row. Which sums are added in which order depends only on the
// ids.
//
// A Sink has
//   static constexpr bool whole_row, adds   what becomes of an element depends on its row; there is
//                                           something to add up
//   begin(block)                            the step; `skipped` where nothing happens
//   float apply<n>(step, row, c, g)         of single elements; returns what is added up
//   finish(block, added, k)                 the sums of the threads of the k-th block that adds
//   float first<n>(step, row, c, g), float row_state(row), float factor(step, sum, state),
//   set_row_state(row, state), last<n>(step, row, c, g, factor)     instead of apply, of whole rows
#pragma once

#include <cstdint>

#include "kernels/cuda/rows/row_gradients.h"
#include "kernels/shared/block/lanes.h"

namespace tandem::cuda {

inline constexpr int walk_threads = 256;
/// Rows of more positions are long.
inline constexpr std::int64_t most_positions = 64;
/// Where scratch begins in shared memory, after the step that a sink keeps at its start.
inline constexpr std::size_t walk_scratch_at = 256;

/// The groups of positions that a table's rows have.
struct RowGroups {
  const std::int64_t* unique;   // row of each group; null: group i is row i
  const std::int32_t* offsets;  // null: group i has position i
  const std::int32_t* count;    // how many groups; null: `most`
  std::int64_t most;

  TANDEM_HOST_DEVICE std::int64_t groups() const { return count == nullptr ? most : *count; }
  TANDEM_HOST_DEVICE std::int64_t row(std::int64_t u) const {
    return unique == nullptr ? u : unique[u];
  }
  TANDEM_HOST_DEVICE std::int64_t begin(std::int64_t u) const {
    return offsets == nullptr ? u : offsets[u];
  }
  TANDEM_HOST_DEVICE std::int64_t end(std::int64_t u) const {
    return offsets == nullptr ? u + 1 : offsets[u + 1];
  }
  /// The last group that begins at or before the position's place in the order.
  TANDEM_HOST_DEVICE std::int64_t find(std::int64_t place) const {
    std::int64_t low = 0;
    for (std::int64_t above = *count; above - low > 1;) {
      const std::int64_t middle = low + (above - low) / 2;
      (offsets[middle] <= place ? low : above) = middle;
    }
    return low;
  }
};

/// A row and the part of the order that belongs to it; row -1: there is none.
struct PickedRow {
  std::int64_t row, begin, end;
};

/// Chunk k of the order begins at place k * most_positions.
struct LongRows {
  std::int64_t chunks;   // 0: no row can be long
  float* sums;           // [chunks, columns] of chunks in long rows
  std::int32_t* owners;  // [chunks]: the long group whose first chunk boundary this is, or -1
};

/// For all i in [begin, end), by `stride`, of which each block takes `walk_threads / lanes` at
/// once: pick(i), then gradient(picked, c) for its columns goes to the sink. Adds up what the sink
/// says.
template <int n, class Sink, class Step, class Block, class Pick, class Gradient>
TANDEM_HOST_DEVICE void walk_rows(const Block& block, const Sink& sink, const Step& step,
                                  std::int64_t columns, int lanes, std::int64_t begin,
                                  std::int64_t end, std::int64_t stride, Pick pick,
                                  Gradient gradient,
                                  typename Block::template Private<double>& added) {
  if constexpr (!Sink::whole_row) {
    block.each([&](int thread) {
      for (std::int64_t i = begin + thread / lanes; i < end; i += stride) {
        const PickedRow picked = pick(i);
        if (picked.row < 0) continue;
        for (std::int64_t c = thread % lanes * n; c < columns; c += lanes * n) {
          const float more = sink.template apply<n>(step, picked.row, c, gradient(picked, c));
          if constexpr (Sink::adds) added(thread) += static_cast<double>(more);
        }
      }
    });
  } else {
    typename Block::template Private<PickedRow> picked;
    /// A thread's columns, where it has only these.
    typename Block::template Private<Values<n>> only;
    typename Block::template Private<float> sum, state;
    const bool once = columns <= lanes * n;
    for (std::int64_t first = begin; first < end; first += stride) {
      block.each([&](int thread) {
        const std::int64_t i = first + thread / lanes;
        picked(thread) = i < end ? pick(i) : PickedRow{-1, 0, 0};
        sum(thread) = state(thread) = 0;
        const std::int64_t row = picked(thread).row;
        if (row < 0) return;
        state(thread) = sink.row_state(row);
        for (std::int64_t c = thread % lanes * n; c < columns; c += lanes * n) {
          only(thread) = gradient(picked(thread), c);
          sum(thread) += sink.template first<n>(step, row, c, only(thread));
        }
      });
      if (lanes == walk_threads) {
        const float all = block.sum(sum);
        block.each([&](int thread) { sum(thread) = all; });
      } else {
        sum_lanes(block, sum, lanes);
      }
      block.each([&](int thread) {
        const std::int64_t row = picked(thread).row;
        if (row < 0) return;
        const float factor =
            sink.factor(step, sum(thread), static_cast<float>(columns), state(thread));
        if (thread % lanes == 0) sink.set_row_state(row, state(thread));
        for (std::int64_t c = thread % lanes * n; c < columns; c += lanes * n) {
          const Values<n> g = once ? only(thread) : gradient(picked(thread), c);
          sink.template last<n>(step, row, c, g, factor);
        }
      });
    }
  }
}

/// The first blocks take the rows that are not long, the others the chunks of those that are.
template <class Sink, int n>
struct SumRows {
  Sink sink;
  PositionGradients gradients;
  RowGroups groups;
  LongRows longs;
  unsigned row_blocks;
  int lanes;

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    if (block.index() >= row_blocks) {
      sum_chunks(block);
      return;
    }
    const auto step = sink.begin(block);
    if (step.skipped) return;
    const std::int64_t at_once = walk_threads / lanes;
    const std::int64_t longest = longs.chunks == 0 ? INT64_MAX : most_positions;
    typename Block::template Private<double> added;
    block.each([&](int thread) { added(thread) = 0; });
    walk_rows<n>(
        block, sink, step, gradients.columns, lanes, block.index() * at_once, groups.groups(),
        row_blocks * at_once,
        [&](std::int64_t u) {
          const std::int64_t begin = groups.begin(u), end = groups.end(u);
          return PickedRow{end - begin > longest ? -1 : groups.row(u), begin, end};
        },
        [&](const PickedRow& picked, std::int64_t c) {
          return gradients.sum<n>(picked.begin, picked.end, c);
        },
        added);
    sink.finish(block, added, block.index());
  }

  template <class Block>
  TANDEM_HOST_DEVICE void sum_chunks(Block& block) const {
    const std::int64_t at_once = walk_threads / lanes;
    const std::int64_t stride = (block.blocks() - row_blocks) * at_once;
    const std::int64_t first = (block.index() - row_blocks) * at_once;
    block.each([&](int thread) {
      const int lane = thread % lanes;
      const std::int64_t all = groups.groups(), positions = all == 0 ? 0 : groups.end(all - 1);
      for (std::int64_t k = first + thread / lanes; k < longs.chunks; k += stride) {
        const std::int64_t place = k * most_positions;
        std::int32_t owner = -1;
        if (place < positions) {
          const std::int64_t u = groups.find(place), begin = groups.begin(u), end = groups.end(u);
          if (end - begin > most_positions) {
            if (begin > place - most_positions) owner = static_cast<std::int32_t>(u);
            const std::int64_t next = place + most_positions;
            const std::int64_t stop = end < next ? end : next;
            for (std::int64_t c = lane * n; c < gradients.columns; c += lanes * n) {
              store<n>(longs.sums, k * gradients.columns + c, gradients.sum<n>(place, stop, c));
            }
          }
        }
        if (lane == 0) longs.owners[k] = owner;
      }
    });
  }
};

/// Block k adds up what belongs to the long row that chunk k owns, and hands it to the sink.
template <class Sink, int n>
struct FinishLongRows {
  Sink sink;
  PositionGradients gradients;
  RowGroups groups;
  LongRows longs;
  unsigned row_blocks;  // blocks of SumRows
  int lanes;
  static constexpr std::size_t shared_bytes = walk_scratch_at + walk_threads * n * sizeof(float);

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const std::int64_t k = block.index();
    const std::int32_t owner = longs.owners[k];
    typename Block::template Private<double> added;
    block.each([&](int thread) { added(thread) = 0; });
    if (owner >= 0) {
      const auto step = sink.begin(block);
      if (step.skipped) return;
      add_chunks(block, k, owner);
      walk_rows<n>(
          block, sink, step, gradients.columns, walk_threads, 0, 1, 1,
          [&](std::int64_t) {
            return PickedRow{groups.row(owner), 0, 0};
          },
          [&](const PickedRow&, std::int64_t c) {
            return load<n>(longs.sums, k * gradients.columns + c);
          },
          added);
    }
    sink.finish(block, added, row_blocks + block.index());
  }

  /// sums[k] becomes the sum of the whole row: of the positions before chunk k, which are fewer
  /// than a chunk, and of the chunks from k on.
  template <class Block>
  TANDEM_HOST_DEVICE void add_chunks(Block& block, std::int64_t k, std::int64_t owner) const {
    auto* const scratch = block.template shared<float>(walk_scratch_at);  // [n, walk_threads]
    const std::int64_t columns = gradients.columns, place = k * most_positions;
    const std::int64_t begin = groups.begin(owner);
    const std::int64_t last = (groups.end(owner) - 1) / most_positions;
    const int at_once = walk_threads / lanes;
    for (std::int64_t c0 = 0; c0 < columns; c0 += lanes * n) {
      block.each([&](int thread) {
        const std::int64_t c = c0 + thread % lanes * n;
        if (c >= columns) return;
        Values<n> all{};
        const auto add = [&](const Values<n>& more) {
          for (int e = 0; e < n; ++e) all.at[e] += more.at[e];
        };
        for (std::int64_t i = begin + thread / lanes; i < place; i += at_once) {
          add(gradients.sum<n>(i, i + 1, c));
        }
        for (std::int64_t j = k + thread / lanes; j <= last; j += at_once) {
          add(load<n>(longs.sums, j * columns + c));
        }
        for (int e = 0; e < n; ++e) scratch[e * walk_threads + thread] = all.at[e];
      });
      block.sync();
      block.each([&](int thread) {
        const std::int64_t c = c0 + thread * n;
        if (thread >= lanes || c >= columns) return;
        Values<n> all{};
        for (int from = thread; from < walk_threads; from += lanes) {
          for (int e = 0; e < n; ++e) all.at[e] += scratch[e * walk_threads + from];
        }
        store<n>(longs.sums, k * columns + c, all);
      });
      block.sync();
    }
  }
};

/// Rows of the table that are in no group take the step of a gradient of zeros. Each block has a
/// range of rows.
template <class Sink, int n>
struct StepOtherRows {
  Sink sink;
  RowGroups groups;
  std::int64_t rows, columns;
  int lanes;
  static constexpr std::size_t shared_bytes = walk_scratch_at + 2 * sizeof(std::int64_t);

  template <class Block>
  TANDEM_HOST_DEVICE void operator()(Block& block) const {
    const auto step = sink.begin(block);
    if (step.skipped) return;
    auto* const range = block.template shared<std::int64_t>(walk_scratch_at);
    const std::int64_t each = (rows + block.blocks() - 1) / block.blocks();
    const std::int64_t begin = block.index() * each;
    const std::int64_t end = begin + each < rows ? begin + each : rows;
    block.one([&] {
      range[0] = first_from(0, groups.groups(), begin);
      range[1] = first_from(range[0], groups.groups(), end);
    });
    block.sync();
    const std::int64_t low = range[0], high = range[1];
    const std::int64_t at_once = walk_threads / lanes;
    typename Block::template Private<double> added;
    walk_rows<n>(
        block, sink, step, columns, lanes, begin, end, at_once,
        [&](std::int64_t row) {
          const std::int64_t u = first_from(low, high, row);
          const bool touched = u < high && groups.unique[u] == row;
          return PickedRow{touched ? -1 : row, 0, 0};
        },
        [](const PickedRow&, std::int64_t) { return Values<n>{}; }, added);
  }

  /// The first group in [low, high) of this row or a later one; `high` where there is none.
  TANDEM_HOST_DEVICE std::int64_t first_from(std::int64_t low, std::int64_t high,
                                             std::int64_t row) const {
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (groups.unique[middle] < row)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
};

/// How a walk is cut for a number of positions and columns.
struct WalkPlan {
  std::int64_t positions = 0, columns = 0;
  bool whole_row = false;

  std::int64_t chunks() const {
    return positions > most_positions ? (positions + most_positions - 1) / most_positions : 0;
  }
  /// Whole rows are summed over a part of a warp, or over a block.
  int lanes(int n) const {
    const std::int64_t units = (columns + n - 1) / n;
    if (!whole_row) return lanes_for(units, walk_threads);
    return units > 64 ? walk_threads : lanes_for(units);
  }
  std::size_t sums_bytes() const {
    return padded(static_cast<std::size_t>(chunks() * columns) * sizeof(float));
  }
  std::size_t workspace_bytes() const {
    return sums_bytes() + padded(static_cast<std::size_t>(chunks()) * sizeof(std::int32_t));
  }
  LongRows long_rows(void* workspace) const {
    return {chunks(), static_cast<float*>(workspace),
            reinterpret_cast<std::int32_t*>(static_cast<char*>(workspace) + sums_bytes())};
  }
  unsigned row_blocks(const GpuContext& gpu, std::int64_t groups, int n) const {
    return blocks_for(gpu, groups, walk_threads / lanes(n));
  }
};

#if defined(__CUDACC__)
/// Two launches, one where no row can be long. Returns how many blocks called `Sink::finish`.
template <int n, class Sink>
std::int64_t sum_rows(GpuContext& gpu, const WalkPlan& plan, const Sink& sink,
                      const PositionGradients& gradients, const RowGroups& groups, void* workspace,
                      void* queue) {
  const int lanes = plan.lanes(n);
  const unsigned row_blocks = plan.row_blocks(gpu, groups.most, n);
  const LongRows longs = plan.long_rows(workspace);
  const unsigned chunk_blocks =
      longs.chunks == 0 ? 0 : blocks_for(gpu, longs.chunks, walk_threads / lanes);
  const SumRows<Sink, n> body{sink, gradients, groups, longs, row_blocks, lanes};
  const LaunchShape shape{.blocks = row_blocks + chunk_blocks,
                          .threads = walk_threads,
                          .shared_bytes = walk_scratch_at};
  gpu.launch(launch_of("sum rows", shape, body), queue);
  if (longs.chunks == 0) return row_blocks;
  const FinishLongRows<Sink, n> finish{sink, gradients, groups, longs, row_blocks, lanes};
  const LaunchShape per_chunk{.blocks = static_cast<unsigned>(longs.chunks),
                              .threads = walk_threads,
                              .shared_bytes = finish.shared_bytes};
  gpu.launch(launch_of("finish long rows", per_chunk, finish), queue);
  return row_blocks + longs.chunks;
}
#endif

}  // namespace tandem::cuda
