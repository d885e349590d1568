// Metrics over whole data sets, exact over all samples: accuracy, loss, mse.
#pragma once

#include <cstdint>

#include "engine/graph/host_tensor.h"
#include "engine/training/config/run_config.h"

namespace tandem {

/// Counts over batches. Logits [N, C], [N, d.., C] or [N, C, d..] against integer labels, one-hot
/// labels of the logits' shape, or one logit per sample against 0/1 labels (positive = class 1).
class Accuracy {
 public:
  void add(const HostTensor& logits, const HostTensor& labels,
           const std::optional<std::int64_t>& ignore_index);
  double value() const { return total_ == 0 ? 0 : static_cast<double>(correct_) / total_; }

 private:
  std::int64_t correct_ = 0, total_ = 0;
};

/// Mean of (prediction - target)^2 over all elements.
class MeanSquaredError {
 public:
  void add(const HostTensor& predictions, const HostTensor& targets);
  double value() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

/// Whether a larger value of the metric is the better one.
bool larger_is_better(const std::string& metric);

}  // namespace tandem
