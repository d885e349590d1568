// The Dice coefficient of labels and predictions, which is F1 as segmentation has it.
#include "engine/metrics/class_counts.h"

namespace tandem::metrics {
namespace {

double dice_of(const ClassCounts& c) {
  return share(2 * c.right, 2 * c.right + c.wrong + c.missed);
}

}  // namespace

MetricKind dice() {
  return {.name = "dice",
          .source = "scikit-learn: f1_score",
          .help =
              "twice the intersection over the sum of labels and predictions of a class: 2 right / "
              "(2 right + wrong + missed)",
          .options = RegionOptions{},
          .better = Better::larger,
          .scores = class_scores | binary_scores,
          .default_name = name_with_average,
          .is_table = is_by_class,
          .make = make_of_counts<dice_of>};
}

}  // namespace tandem::metrics
