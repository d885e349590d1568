// The binary cross-entropy without the weights of the loss.
#include <algorithm>
#include <cmath>

#include "engine/metrics/metric_sums.h"

namespace tandem::metrics {
namespace {

/// -(y log p + (1 - y) log(1 - p)) with p = sigmoid(x), written for both signs of x: natural
/// logarithm.
double logit_loss(double x, double y) {
  return std::max(x, 0.0) - x * y + std::log1p(std::exp(-std::abs(x)));
}

}  // namespace

MetricKind log_loss() {
  return {.name = "log_loss",
          .source = "scikit-learn: log_loss",
          .help =
              "the mean of -(y log p + (1 - y) log(1 - p)) with p = sigmoid(logit), without "
              "the weights of the loss",
          .scores = binary_logits,
          .make = plain<MeanOfElements<logit_loss>>};
}

}  // namespace tandem::metrics
