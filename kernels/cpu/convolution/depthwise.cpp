#include "kernels/cpu/convolution/depthwise.h"

#include <algorithm>

#include "kernels/cpu/convolution/convolution.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/parallel.h"

namespace tandem {
namespace {

/// One vector of channels of one run of images is a piece of work; where there are fewer vectors
/// than threads, the images are cut too, and what the runs give is summed in their order.
class DepthwiseWeightGradient final : public PreparedKernel {
 public:
  DepthwiseWeightGradient(const Convolution& c, const DeviceFacts& facts)
      : isa_(isa_of(facts)), images_(c.images()) {
    map_.rows = convolution_axis(c, 0);
    map_.columns = convolution_axis(c, 1);
    map_.channels = c.in_channels();
    vectors_ = (map_.channels + width() - 1) / width();
    const std::int64_t flops = 2 * images_ * c.out_positions() * map_.channels * c.taps();
    const int parts = parts_for(facts.threads, flops, grain_flops);
    runs_ =
        static_cast<int>(std::clamp<std::int64_t>((parts + vectors_ - 1) / vectors_, 1, images_));
    parts_ = static_cast<int>(std::min<std::int64_t>(parts, vectors_ * runs_));
    weights_ = c.taps() * map_.channels;
    if (runs_ > 1) workspace_bytes = static_cast<std::size_t>(runs_ * weights_) * sizeof(float);
  }

  void run(const KernelArguments& a) noexcept override {
    float* const dw = static_cast<float*>(a.outputs[0]);
    float* const sums = runs_ > 1 ? static_cast<float*>(a.workspace) : dw;
    parallel_parts(parts_, [&](int part) {
      const Range range = part_of(vectors_ * runs_, part, parts_);
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        const Range images = part_of(images_, static_cast<int>(i % runs_), runs_);
        const std::int64_t channel = i / runs_ * width();
        const DepthwisePart piece{.map = &map_,
                                  .x = static_cast<const float*>(a.inputs[0]),
                                  .dy = static_cast<const float*>(a.inputs[1]),
                                  .dw = sums + i % runs_ * weights_,
                                  .first_image = images.begin,
                                  .images = images.size(),
                                  .channel = channel,
                                  .count = std::min(width(), map_.channels - channel)};
        isa_ == Isa::avx512 ? depthwise_weights_avx512(piece) : depthwise_weights_avx2(piece);
      }
    });
    for (std::int64_t i = 0; runs_ > 1 && i < weights_; ++i) {
      float sum = 0;
      for (int run = 0; run < runs_; ++run) sum += sums[run * weights_ + i];
      dw[i] = sum;
    }
  }

 private:
  std::int64_t width() const { return isa_ == Isa::avx512 ? 16 : 8; }

  Depthwise map_;
  Isa isa_;
  std::int64_t images_ = 0, vectors_ = 0, weights_ = 0;
  int runs_ = 1, parts_ = 1;
};

}  // namespace

std::unique_ptr<PreparedKernel> prepare_depthwise_weights(const KernelRequest& request) {
  return std::make_unique<DepthwiseWeightGradient>(convolution_of(request), *request.facts);
}

}  // namespace tandem
