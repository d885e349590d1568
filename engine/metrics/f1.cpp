// F1: the harmonic mean of precision and recall.
#include "engine/metrics/class_counts.h"

namespace tandem::metrics {
namespace {

double f1_of(const ClassCounts& c) { return share(2 * c.right, 2 * c.right + c.wrong + c.missed); }

}  // namespace

MetricKind f1() {
  return {.name = "f1",
          .source = "scikit-learn: f1_score",
          .help = "the harmonic mean of precision and recall: 2 right / (2 right + wrong + missed)",
          .options = AverageOptions{},
          .better = Better::larger,
          .scores = class_scores | binary_scores,
          .default_name = name_with_average,
          .is_table = is_by_class,
          .make = make_of_counts<f1_of>};
}

}  // namespace tandem::metrics
