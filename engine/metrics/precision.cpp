// Precision: how many of the predictions of a class are right.
#include "engine/metrics/class_counts.h"

namespace tandem::metrics {
namespace {

double precision_of(const ClassCounts& c) { return share(c.right, c.right + c.wrong); }

}  // namespace

MetricKind precision() {
  return {.name = "precision",
          .source = "scikit-learn: precision_score",
          .help = "the share of predictions of a class that are right; 0 where there is none",
          .options = AverageOptions{},
          .better = Better::larger,
          .scores = class_scores | binary_scores,
          .default_name = name_with_average,
          .is_table = is_by_class,
          .make = make_of_counts<precision_of>};
}

}  // namespace tandem::metrics
