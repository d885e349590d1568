// SoftmaxCrossEntropy and its gradient where the classes are not the last axis: by tiles of
// columns, a label each, so that the gradient finds a tile's logits in cache.
#include <algorithm>

#include "engine/operators/operator.h"
#include "kernels/cpu/lines.h"
#include "kernels/cpu/losses.h"

namespace tandem {
namespace {

/// Logits of a tile: half of a first cache of 32 KiB, the gradient takes the other half. Rows of
/// less than 64 are not worth their reads.
constexpr std::int64_t tile_elements = 4096, narrowest_tile = 64;

class CrossEntropyColumns final : public PreparedKernel {
 public:
  CrossEntropyColumns(const KernelRequest& request, const CrossEntropyOperands& at)
      : at_(at),
        functions_(vector_functions(request)),
        lines_(request.inputs[static_cast<std::size_t>(at.logits)].type.shape, 1),
        labels_(request, static_cast<std::size_t>(at.labels),
                static_cast<std::size_t>(at.label_weights)),
        smoothing_(static_cast<float>(request.attributes().number("label_smoothing"))) {
    const std::int64_t fit = tile_elements / std::max<std::int64_t>(lines_.length, 1) / 16 * 16;
    width_ = std::clamp(fit, narrowest_tile, (lines_.inner + 15) / 16 * 16 + narrowest_tile);
    tiles_ = (lines_.inner + width_ - 1) / width_;
    // An exponential costs about as much as reading 16 bytes from L2.
    const std::int64_t bytes = at.makes_losses() && at.makes_gradient() ? 32 : 16;
    parts_ = parts_for(request.facts->threads, lines_.count * lines_.length * bytes, grain_bytes);
    workspace_bytes = static_cast<std::size_t>(parts_) * part_bytes();
  }

  void run(const KernelArguments& a) noexcept override {
    parallel_parts(parts_, [&](int part) {
      char* const own =
          static_cast<char*>(a.workspace) + static_cast<std::size_t>(part) * part_bytes();
      const Range range = part_of(lines_.count / lines_.inner * tiles_, part, parts_);
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        const std::int64_t column = i % tiles_ * width_;
        run_tile(a, i / tiles_, column, std::min(width_, lines_.inner - column), own);
      }
    });
  }

 private:
  // Bytes of one part: log_sum_exp, factors and means of a tile's columns, and where its labels
  // lie.
  std::size_t part_bytes() const {
    return static_cast<std::size_t>(width_) * (3 * sizeof(float) + sizeof(std::int64_t));
  }

  void run_tile(const KernelArguments& a, std::int64_t outer, std::int64_t column, std::int64_t n,
                char* workspace) const {
    const std::int64_t classes = lines_.length, stride = lines_.inner;
    const std::int64_t first = outer * stride + column;  // the first element in labels and losses
    const std::int64_t start = outer * classes * stride + column;
    const float* const x = static_cast<const float*>(a.inputs[at_.logits]) + start;
    float* const losses = output_at<float>(a, at_.losses);
    float* const dlogits = output_at<float>(a, at_.dlogits);
    float* const log_sums = output_at<float>(a, at_.log_sum_exp);
    auto* const label_at = reinterpret_cast<std::int64_t*>(workspace);
    float* const own_sums = reinterpret_cast<float*>(label_at + width_);
    float* const factors = own_sums + width_;
    float* const means = factors + width_;

    const float* sums = input_at<float>(a, at_.sums);
    if (sums != nullptr) {
      sums += first;
    } else {
      float* const made = log_sums != nullptr ? log_sums + first : own_sums;
      functions_.columns_log_sum_exp(x, classes, stride, n, made);
      sums = made;
    }
    if (losses == nullptr && dlogits == nullptr) return;
    for (std::int64_t i = 0; i < n; ++i) {
      const Label label = labels_.get(a, first + i, classes);
      label_at[i] = label.at * stride + i;
      factors[i] = label.weight;
    }
    if (losses != nullptr) {
      if (smoothing_ != 0) functions_.columns_mean(x, classes, stride, n, means);
      for (std::int64_t i = 0; i < n; ++i) {
        float loss = sums[i] - (1 - smoothing_) * x[label_at[i]];
        if (smoothing_ != 0) loss -= smoothing_ * means[i];
        losses[first + i] = factors[i] == 0 ? 0 : factors[i] * loss;
      }
    }
    if (dlogits == nullptr) return;
    const float* const dlosses = static_cast<const float*>(a.inputs[at_.dlosses]) + first;
    const float* const weights =
        labels_.weighted ? static_cast<const float*>(a.inputs[labels_.weight_input]) + first
                         : nullptr;
    for (std::int64_t i = 0; i < n; ++i) factors[i] *= dlosses[i];
    float* const dx = dlogits + start;
    functions_.columns_softmax_less(x, classes, stride, n, sums, weights, factors,
                                    smoothing_ / static_cast<float>(classes), dx);
    for (std::int64_t i = 0; i < n; ++i) {
      if (weights != nullptr && weights[i] == 0) continue;
      dx[label_at[i]] -= factors[i] * (1 - smoothing_);
    }
  }

  CrossEntropyOperands at_;
  const VectorFunctions& functions_;
  Lines lines_;
  Labels labels_;
  float smoothing_;
  std::int64_t width_ = 0, tiles_ = 0;
  int parts_ = 1;
};

}  // namespace

std::unique_ptr<PreparedKernel> prepare_cross_entropy_columns(const KernelRequest& request,
                                                              const CrossEntropyOperands& at) {
  return std::make_unique<CrossEntropyColumns>(request, at);
}

}  // namespace tandem
