// Columns of elements shared by the parts of a block: thread `part * width + column`.
#pragma once

#include "kernels/cuda/reductions/rows.h"

namespace tandem::cuda::reductions {

inline constexpr int column_threads = 256;
inline constexpr std::int64_t most_of_group = 1024;  // elements that up to 32 threads reduce

template <class T, int count>
struct Several {
  T values[count];
};

template <class Combine>
struct EachOf {
  Combine combine;
  template <class T, int count>
  TANDEM_HOST_DEVICE Several<T, count> operator()(Several<T, count> a,
                                                  const Several<T, count>& b) const {
    TANDEM_UNROLL
    for (int i = 0; i < count; ++i) a.values[i] = combine(a.values[i], b.values[i]);
    return a;
  }
};

/// Combines the parts of each column, by halves: element `column` of the result, which lies in
/// shared memory (one for each thread) until the next call. Barriers before and after. `width` is a
/// power of two; `Values` is a Private of the block.
template <class Block, class Values, class Combine>
TANDEM_HOST_DEVICE inline auto combined_columns(Block& block, const Values& values, int width,
                                                Combine combine) {
  using T = std::decay_t<decltype(values(0))>;
  T* const shared = block.template shared<T>();
  block.sync();
  block.each([&](int thread) { shared[thread] = values(thread); });
  block.sync();
  for (int half = block.threads() / 2; half >= width; half /= 2) {
    block.each([&](int thread) {
      if (thread < half) shared[thread] = combine(shared[thread], shared[thread + half]);
    });
    block.sync();
  }
  return static_cast<const T*>(shared);
}

/// Into how many parts to cut sums of `steps` additions by a thread, so that blocks fill a GPU, no
/// thread adds more than 256 numbers in a row, and each has 4 at least. `blocks`: of one part.
inline std::int64_t parts_of(std::int64_t steps, std::int64_t blocks, int multiprocessors,
                             int by_processor) {
  const std::int64_t wanted = std::max(multiprocessors, 1) * std::int64_t{by_processor};
  const std::int64_t filling = (wanted + blocks - 1) / std::max<std::int64_t>(blocks, 1);
  const std::int64_t most = std::max<std::int64_t>((steps + 3) / 4, 1);
  return std::max({std::int64_t{1}, std::min(filling, most), (steps + 255) / 256});
}

/// Results that a block of columns has side by side, where each is made of `count` elements.
inline int width_of_columns(std::int64_t results, std::int64_t count) {
  const int parts = power_of_two_from(std::min<std::int64_t>((count + 3) / 4, 32));
  return std::min(column_threads / parts,
                  power_of_two_from(std::min<std::int64_t>(results, column_threads)));
}

/// Where part `part` of `count` things begins.
TANDEM_HOST_DEVICE inline std::int64_t part_begin(std::int64_t count, std::int64_t part,
                                                  std::int64_t parts) {
  const std::int64_t size = count / parts, more = count % parts;
  return part * size + (part < more ? part : more);
}

/// The axis of a dense tensor as lines: [outer, length, inner] in memory.
struct Lines {
  std::int64_t count = 0, length = 0, inner = 1;

  TANDEM_HOST_DEVICE std::int64_t start(std::int64_t line) const {
    return inner == 1 ? line * length : line / inner * length * inner + line % inner;
  }
};

inline constexpr int line_width = 32;  // lines of a block, whose other threads share their lengths

inline LaunchShape shape_of_lines(const Lines& lines, std::size_t shared_by_thread,
                                  int multiprocessors) {
  LaunchShape shape;
  shape.threads = column_threads;
  shape.shared_bytes = column_threads * shared_by_thread;
  shape.blocks = blocks_for(multiprocessors, lines.count, line_width);
  return shape;
}

/// Launches the kernel of lines where their elements lie apart, else of_rows(pack, values, whole,
/// rows), the one of rows. `packs`: accesses of 16 bytes.
template <class T, int group_values, int block_values, class OfLines, class OfRows>
void launch_lines(const Gpu& gpu, const char* name, void* queue, const Lines& lines,
                  std::size_t shared_by_thread, const OfLines& of_lines, bool packs,
                  const OfRows& of_rows) {
  const int processors = gpu->properties.multiprocessors;
  if (lines.inner != 1) {
    gpu->launch(launch_of(name, shape_of_lines(lines, shared_by_thread, processors), of_lines),
                queue);
    return;
  }
  const auto shape =
      shape_of_rows<group_values, block_values>(lines.count, lines.length, processors);
  const Rows rows{lines.count, lines.length, shape.team};
  with_row_kernel<T, group_values, block_values>(
      packs, shape.kind, [&](auto pack, auto values, auto whole) {
        gpu->launch(launch_of(name, shape.launch, of_rows(pack, values, whole, rows)), queue);
      });
}

/// The lines of a dense operand along `axis`; its other axes may lie in any order.
inline Lines lines_of(const Operand& operand, std::size_t axis) {
  Lines lines;
  lines.length = operand.type.shape[axis];
  lines.count = lines.length == 0 ? 0 : operand.type.elements() / lines.length;
  if (lines.length != 1) lines.inner = operand.layout.strides[axis];
  return lines;
}

}  // namespace tandem::cuda::reductions
