// Axes are ordered as the target lies in memory. Where the source runs along another axis than the
// target, that axis is brought next to the last one and both are copied in blocks that stay in L1.
#include "kernels/cpu/strided_copy.h"

#include <cassert>
#include <cstring>

namespace tandem {
namespace {

constexpr std::int64_t block_rows = 64, block_columns = 64;

template <class T>
void copy_line(const char* from, std::int64_t from_stride, char* to, std::int64_t to_stride,
               std::int64_t n) {
  const T* x = reinterpret_cast<const T*>(from);
  T* y = reinterpret_cast<T*>(to);
  if (to_stride == 1 && from_stride == 0) {
    const T value = *x;
    for (std::int64_t i = 0; i < n; ++i) y[i] = value;
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) y[i * to_stride] = x[i * from_stride];
}

void copy_line(std::int64_t bytes, const char* from, std::int64_t from_stride, char* to,
               std::int64_t to_stride, std::int64_t n) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(n * bytes));
    return;
  }
  switch (bytes) {
    case 1:
      return copy_line<std::uint8_t>(from, from_stride, to, to_stride, n);
    case 2:
      return copy_line<std::uint16_t>(from, from_stride, to, to_stride, n);
    case 4:
      return copy_line<std::uint32_t>(from, from_stride, to, to_stride, n);
    default:
      return copy_line<std::uint64_t>(from, from_stride, to, to_stride, n);
  }
}

}  // namespace

StridedCopy::StridedCopy(const Shape& shape, std::vector<std::int64_t> from,
                         std::vector<std::int64_t> to, std::size_t element_bytes,
                         const VectorFunctions& functions, int threads, std::int64_t from_offset,
                         std::int64_t to_offset)
    : functions_(&functions),
      elements_(element_count(shape)),
      bytes_(static_cast<std::int64_t>(element_bytes)),
      from_offset_(from_offset),
      to_offset_(to_offset) {
  if (elements_ == 0) return;
  std::vector<StridedAxis> axes;
  for (int axis : memory_order(Layout{0, to}, shape)) {
    axes.push_back({shape[axis], 0, {from[axis], to[axis]}});
  }
  axes = collapse(axes);
  if (axes[0].strides.empty()) axes[0].strides = {1, 1};
  assert(axes.size() <= max_axes);
  // The axis along which the source is contiguous, where it is not the last one.
  if (axes.size() > 1 && axes.back().strides[0] != 1 && axes.back().strides[1] == 1) {
    for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
      if (axes[i].strides[0] != 1 || axes[i].extent < 4) continue;
      const StridedAxis moved = axes[i];
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
      axes.insert(axes.end() - 1, moved);
      inner_axes_ = 2;
      break;
    }
  }
  axes_ = static_cast<int>(axes.size());
  for (int a = 0; a < axes_; ++a) {
    extents_[a] = axes[a].extent;
    from_[a] = axes[a].strides[0];
    to_[a] = axes[a].strides[1];
  }
  const int first = axes_ - inner_axes_;
  block_ = inner_axes_ == 2 ? block_rows : std::max<std::int64_t>(1 << 15, 1);
  blocks_ = (extents_[first] + block_ - 1) / block_;
  units_ = blocks_;
  for (int a = 0; a < first; ++a) units_ *= extents_[a];
  parts_ = static_cast<int>(
      std::min<std::int64_t>(parts_for(threads, elements_ * bytes_ * 2, grain_bytes), units_));
}

void StridedCopy::run(const void* from, void* to) const {
  if (elements_ == 0) return;
  const char* x = static_cast<const char*>(from) + from_offset_ * bytes_;
  char* y = static_cast<char*>(to) + to_offset_ * bytes_;
  parallel_parts(parts_, [&](int part) { run_part(x, y, part_of(units_, part, parts_)); });
}

void StridedCopy::run_part(const char* from, char* to, Range units) const {
  const int outer = axes_ - inner_axes_;
  std::int64_t index[max_axes] = {};
  std::int64_t number = units.begin, block = number % blocks_;
  number /= blocks_;
  std::int64_t from_at = 0, to_at = 0;
  for (int a = outer - 1; a >= 0; --a) {
    index[a] = number % extents_[a];
    number /= extents_[a];
    from_at += index[a] * from_[a];
    to_at += index[a] * to_[a];
  }
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    const std::int64_t begin = block * block_, m = std::min(block_, extents_[outer] - begin);
    const char* x = from + (from_at + begin * from_[outer]) * bytes_;
    char* y = to + (to_at + begin * to_[outer]) * bytes_;
    if (inner_axes_ == 1) {
      copy_line(bytes_, x, from_[outer], y, to_[outer], m);
    } else {
      // x[c][r], contiguous in r (the moved axis) → y[r][c], contiguous in c (the last axis)
      const std::int64_t last = axes_ - 1, n = extents_[last];
      for (std::int64_t c = 0; c < n; c += block_columns) {
        const std::int64_t k = std::min(block_columns, n - c);
        const char* x_block = x + c * from_[last] * bytes_;
        char* y_block = y + c * bytes_;
        if (bytes_ == 4) {
          functions_->transpose4(reinterpret_cast<const float*>(x_block), from_[last],
                                 reinterpret_cast<float*>(y_block), to_[outer], k, m);
          continue;
        }
        for (std::int64_t r = 0; r < m; ++r) {
          copy_line(bytes_, x_block + r * bytes_, from_[last], y_block + r * to_[outer] * bytes_, 1,
                    k);
        }
      }
    }
    if (++block < blocks_) continue;
    block = 0;
    for (int a = outer - 1; a >= 0; --a) {
      from_at += from_[a];
      to_at += to_[a];
      if (++index[a] < extents_[a]) break;
      from_at -= from_[a] * extents_[a];
      to_at -= to_[a] * extents_[a];
      index[a] = 0;
    }
  }
}

}  // namespace tandem
