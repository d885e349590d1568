// Which way a copy goes: words, or tiles where the source runs along another axis than the target.
#include <algorithm>
#include <bit>

#include "kernels/cuda/pointwise/axes.h"
#include "kernels/cuda/pointwise/copies.h"
#include "kernels/cuda/pointwise/pointwise.h"

namespace tandem::cuda {
namespace {

// The shortest side of a matrix that is transposed in tiles.
constexpr std::int64_t least_side = 16;

// The largest power of 2, at most 16, that divides all of them.
int common_word(std::uint64_t bits) { return 1 << std::min(4, std::countr_zero(bits | 16)); }

// The axis along which the source is contiguous, where that is worth tiles; else -1.
int moved_axis(const AxisPlan& plan) {
  const std::size_t last = plan.extents.size() - 1;
  if (plan.strides[1][last] != 1 || plan.strides[0][last] == 1 || plan.extents[last] < least_side) {
    return -1;
  }
  for (std::size_t a = 0; a < last; ++a) {
    if (plan.strides[0][a] == 1 && plan.extents[a] >= least_side) return static_cast<int>(a);
  }
  return -1;
}

AxisPlan without(const AxisPlan& plan, int moved) {
  AxisPlan rest;
  rest.strides.resize(2);
  for (int a = 0; a + 1 < plan.axes(); ++a) {
    if (a == moved) continue;
    rest.extents.push_back(plan.extents[a]);
    for (int k = 0; k < 2; ++k) rest.strides[k].push_back(plan.strides[k][a]);
  }
  if (rest.extents.empty()) {
    rest.extents.push_back(1);
    for (int k = 0; k < 2; ++k) rest.strides[k].push_back(0);
  }
  return rest;
}

}  // namespace

StridedCopy::StridedCopy(const Shape& shape, const std::vector<std::int64_t>& from,
                         const std::vector<std::int64_t>& to, std::size_t element_bytes,
                         int multiprocessors, std::int64_t from_offset, std::int64_t to_offset)
    : elements_(element_count(shape)),
      from_offset_(from_offset * static_cast<std::int64_t>(element_bytes)),
      to_offset_(to_offset * static_cast<std::int64_t>(element_bytes)),
      element_bytes_(static_cast<int>(element_bytes)),
      most_word_(static_cast<int>(element_bytes)),
      multiprocessors_(multiprocessors) {
  if (elements_ == 0) return;
  const AxisPlan plan = plan_axes(shape, memory_order(to, shape), {from, to});
  const int last = plan.axes() - 1, moved = moved_axis(plan);
  if (moved >= 0) {
    transposes_ = true;
    const int side = tile_side(element_bytes);
    TransposeArguments& t = transpose_;
    t.rows = plan.extents[moved];
    t.columns = plan.extents[last];
    t.from_stride = plan.strides[0][last];
    t.to_stride = plan.strides[1][moved];
    t.tile_rows = Divisor((t.rows + side - 1) / side);
    t.tile_columns = Divisor((t.columns + side - 1) / side);
    const AxisPlan matrices = without(plan, moved);
    t.walk = make_walk<2>(matrices, {0, 1}, 1);
    t.tiles = matrices.elements() * t.tile_rows.extent * t.tile_columns.extent;
    return;
  }
  const bool in_runs = plan.strides[0][last] == 1 && plan.strides[1][last] == 1;
  if (in_runs) {
    auto bits = static_cast<std::uint64_t>(plan.extents[last]);
    for (int a = 0; a < last; ++a) {
      for (int k = 0; k < 2; ++k) bits |= static_cast<std::uint64_t>(plan.strides[k][a]);
    }
    most_word_ = common_word(bits * element_bytes);
  }
  for (int word = element_bytes_; word <= most_word_; word *= 2) {
    const int width = word / element_bytes_;
    AxisPlan words = plan;
    if (width > 1) {
      words.extents[last] /= width;
      for (int k = 0; k < 2; ++k) {
        for (int a = 0; a < last; ++a) words.strides[k][a] /= width;
      }
    }
    CopyPiece& piece = pieces_[std::countr_zero(static_cast<unsigned>(word))];
    piece.units = words.elements();
    piece.walk = make_walk<2>(words, {0, 1}, 1);
  }
}

void CopyBatch::add(const StridedCopy& copy, const void* from, void* to) {
  if (copy.elements_ == 0) return;
  from = static_cast<const char*>(from) + copy.from_offset_;
  to = static_cast<char*>(to) + copy.to_offset_;
  if (copy.transposes_) {
    TransposeArguments arguments = copy.transpose_;
    arguments.from = from;
    arguments.to = to;
    const LaunchShape shape = spread(arguments.tiles * 256, copy.multiprocessors_);
    launch_transpose(gpu_, arguments, copy.element_bytes_, shape, queue_);
    return;
  }
  const int word =
      common_word(static_cast<std::uint64_t>(copy.most_word_) |
                  reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to));
  if (count_ > 0 && (word != word_ || count_ == pieces_at_once)) flush();
  CopyPiece& piece = arguments_.pieces[count_++];
  piece = copy.pieces_[std::countr_zero(static_cast<unsigned>(word))];
  piece.from = from;
  piece.to = to;
  word_ = word;
  most_units_ = std::max(most_units_, piece.units);
  multiprocessors_ = copy.multiprocessors_;
}

void CopyBatch::flush() {
  if (count_ == 0) return;
  LaunchShape shape = spread((most_units_ + 3) / 4, multiprocessors_);
  shape.blocks_y = static_cast<unsigned>(count_);
  launch_copy(gpu_, arguments_, word_, shape, queue_);
  count_ = 0;
  most_units_ = 0;
}

}  // namespace tandem::cuda
