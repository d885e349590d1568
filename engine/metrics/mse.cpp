// Mean squared error, and the root of it.
#include <cmath>

#include "engine/metrics/metric_sums.h"

namespace tandem::metrics {
namespace {

double squared_error(double prediction, double target) {
  const double difference = prediction - target;
  return difference * difference;
}

double root_of_mean(double mean) { return std::sqrt(mean); }

}  // namespace

MetricKind mse() {
  return {.name = "mse",
          .source = "scikit-learn: mean_squared_error",
          .help = "the mean of (prediction - target)² over all elements",
          .scores = number_scores,
          .make = plain<MeanOfElements<squared_error>>};
}

MetricKind rmse() {
  return {.name = "rmse",
          .source = "scikit-learn: root_mean_squared_error",
          .help = "the square root of mse, in the unit of the targets",
          .scores = number_scores,
          .make = plain<MeanOfElements<squared_error, root_of_mean>>};
}

}  // namespace tandem::metrics
