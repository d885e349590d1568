// Mean absolute error.
#include <cmath>

#include "engine/metrics/metric_sums.h"

namespace tandem::metrics {
namespace {

double absolute_error(double prediction, double target) { return std::abs(prediction - target); }

}  // namespace

MetricKind mae() {
  return {.name = "mae",
          .source = "scikit-learn: mean_absolute_error",
          .help = "the mean of |prediction - target| over all elements",
          .scores = number_scores,
          .make = plain<MeanOfElements<absolute_error>>};
}

}  // namespace tandem::metrics
