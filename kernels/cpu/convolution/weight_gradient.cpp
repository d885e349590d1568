#include "kernels/cpu/convolution/weight_gradient.h"

#include <algorithm>

#include "kernels/cpu/convolution/convolution.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tandem {
namespace {

/// x and dy of a block of rows: what stays in a second cache of 512 KiB while all tiles read it.
constexpr std::int64_t block_bytes = 1 << 18;
/// Where dw does not stay there too, its tiles are read and written for no fewer pixels than these.
constexpr std::int64_t kept_weights_bytes = 1 << 19, fewest_pixels = 512;

/// The threads share the items of dw, each of which one thread sums over all rows. Where there are
/// few items, the rows are cut into runs too, and what these give is summed in their order.
class WeightGradientKernel final : public PreparedKernel {
 public:
  WeightGradientKernel(const Convolution& c, const DeviceFacts& facts)
      : isa_(isa_of(facts)), threads_(facts.threads) {
    const WeightTileLimits tile = isa_ == Isa::avx512 ? weight_tile_avx512 : weight_tile_avx2;
    map_.in_channels = c.in_channels();
    map_.out_channels = c.out_channels();
    map_.rows = convolution_axis(c, 0);
    map_.columns = convolution_axis(c, 1);
    map_.in_tiles = (map_.in_channels + tile.in_channels - 1) / tile.in_channels;
    map_.out_tiles = (map_.out_channels + 2 * tile.lanes - 1) / (2 * tile.lanes);
    weights_ = map_.taps() * map_.in_channels * map_.out_channels;
    rows_ = c.images() * map_.rows.out;

    const std::int64_t floats_of_pixel =
        map_.in_channels * map_.rows.stride * map_.columns.stride + map_.out_channels;
    std::int64_t pixels = block_bytes / (4 * floats_of_pixel);
    if (4 * weights_ > kept_weights_bytes) pixels = std::max(pixels, fewest_pixels);
    block_rows_ = std::max<std::int64_t>(pixels / map_.columns.out, 1);

    const std::int64_t flops = 2 * rows_ * map_.columns.out * weights_;
    parts_ = parts_for(threads_, flops, grain_flops);
    // So that the parts take equally long.
    const std::int64_t wanted = parts_ == 1 ? 1 : 8 * parts_;
    runs_ = static_cast<int>(
        std::clamp<std::int64_t>((wanted + map_.items() - 1) / map_.items(), 1, rows_));
    if (runs_ > 1) workspace_bytes = static_cast<std::size_t>(runs_ * weights_) * sizeof(float);
  }

  void run(const KernelArguments& a) noexcept override {
    float* const dw = static_cast<float*>(a.outputs[0]);
    float* const sums = runs_ > 1 ? static_cast<float*>(a.workspace) : dw;
    const std::int64_t items = map_.items();
    parallel_parts(parts_, [&](int part) {
      const Range range = part_of(runs_ * items, part, parts_);
      for (std::int64_t i = range.begin; i < range.end;) {
        const std::int64_t run = i / items, end = std::min(range.end, (run + 1) * items);
        sum_rows({.map = &map_,
                  .x = static_cast<const float*>(a.inputs[0]),
                  .dy = static_cast<const float*>(a.inputs[1]),
                  .dw = sums + run * weights_,
                  .first_item = i % items,
                  .items = end - i},
                 part_of(rows_, static_cast<int>(run), runs_));
        i = end;
      }
    });
    if (runs_ == 1) return;
    parallel_ranges(threads_, weights_, 4 * (runs_ + 1) * weights_,
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        float sum = 0;
                        for (int run = 0; run < runs_; ++run) sum += sums[run * weights_ + i];
                        dw[i] = sum;
                      }
                    });
  }

 private:
  void sum_rows(WeightGradientPart part, Range rows) const {
    for (std::int64_t row = rows.begin; row < rows.end; row += block_rows_) {
      const std::int64_t end = std::min(row + block_rows_, rows.end);
      const std::int64_t next_end = std::min(end + block_rows_, rows.end);
      part.first_row = row;
      part.rows = end - row;
      part.add = row > rows.begin;
      part.next_x = x_of(part.x, end, next_end);
      part.next_dy = {part.dy + end * dy_row(), (next_end - end) * dy_row()};
      isa_ == Isa::avx512 ? weight_gradient_avx512(part) : weight_gradient_avx2(part);
    }
  }

  std::int64_t dy_row() const { return map_.columns.out * map_.out_channels; }

  /// About what rows begin to end of dy meet.
  FloatRange x_of(const float* x, std::int64_t begin, std::int64_t end) const {
    const ConvolutionAxis& r = map_.rows;
    const auto at = [&](std::int64_t row) {
      const std::int64_t image = row / r.out, y = row % r.out * r.stride;
      return (image * r.in + std::min(y, r.in)) * map_.columns.in * map_.in_channels;
    };
    return {x + at(begin), at(end) - at(begin)};
  }

  WeightGradient map_;
  Isa isa_;
  int threads_, parts_ = 1, runs_ = 1;
  std::int64_t rows_ = 0, block_rows_ = 1, weights_ = 0;
};

}  // namespace

std::unique_ptr<PreparedKernel> prepare_weight_gradient(const KernelRequest& request) {
  return std::make_unique<WeightGradientKernel>(convolution_of(request), *request.facts);
}

}  // namespace tandem
