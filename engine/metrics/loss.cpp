// The loss of the evaluation itself, with its weights and reductions.
#include "engine/metrics/metric.h"

namespace tandem::metrics {

MetricKind loss() {
  return {.name = "loss",
          .source = "[loss] terms, or the model",
          .help = "the loss over all held-out samples; it is always measured"};
}

}  // namespace tandem::metrics
