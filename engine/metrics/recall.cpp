// Recall: how many of the labels of a class are found.
#include "engine/metrics/class_counts.h"

namespace tandem::metrics {
namespace {

double recall_of(const ClassCounts& c) { return share(c.right, c.right + c.missed); }

}  // namespace

MetricKind recall() {
  return {.name = "recall",
          .source = "scikit-learn: recall_score",
          .help = "the share of labels of a class that are predicted; 0 where there is none",
          .options = AverageOptions{},
          .better = Better::larger,
          .scores = class_scores | binary_scores,
          .default_name = name_with_average,
          .is_table = is_by_class,
          .make = make_of_counts<recall_of>};
}

}  // namespace tandem::metrics
