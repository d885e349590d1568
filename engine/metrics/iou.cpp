// Intersection over union, also called Jaccard index.
#include "engine/metrics/class_counts.h"

namespace tandem::metrics {
namespace {

double iou_of(const ClassCounts& c) { return share(c.right, c.right + c.wrong + c.missed); }

}  // namespace

MetricKind iou() {
  return {.name = "iou",
          .source = "scikit-learn: jaccard_score",
          .help =
              "intersection over union of labels and predictions of a class: right / (right + "
              "wrong + missed)",
          .options = RegionOptions{},
          .better = Better::larger,
          .scores = class_scores | binary_scores,
          .default_name = name_with_average,
          .is_table = is_by_class,
          .make = make_of_counts<iou_of>};
}

}  // namespace tandem::metrics
