// Metrics that follow from the mean cross-entropy of labels under a softmax.
#pragma once

#include "engine/metrics/metric.h"

namespace tandem::metrics {

/// `finish` of the mean of -log softmax(logits)[label], natural logarithm, over all labels that are
/// not ignored, without the loss's weights and smoothing. For one-hot labels and probabilities p it
/// is -sum p log softmax(logits). NaN where no label counts. The mean is first divided by `parts`:
/// how many units, such as bytes, a label represents.
std::unique_ptr<Metric> of_token_losses(double (*finish)(double mean), double parts = 1);

/// `MetricKind::make`
template <double (*finish)(double mean)>
std::unique_ptr<Metric> make_of_tokens(const MetricConfig&, unsigned) {
  return of_token_losses(finish);
}

}  // namespace tandem::metrics
