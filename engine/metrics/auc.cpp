// Area under the ROC curve.
#include "engine/metrics/sorted_scores.h"

namespace tandem::metrics {
namespace {

class AreaUnderCurve final : public SortedScores {
 public:
  std::string undefined(const LabelSummary& labels) const override {
    if (labels.positives == 0) return "no label is positive";
    return labels.positives == labels.count ? "all labels are positive" : "";
  }

 protected:
  double of_sorted(std::span<const std::uint64_t> sorted) const override {
    return roc_area(sorted);
  }
};

std::unique_ptr<Metric> make_auc(const MetricConfig&, unsigned) {
  return std::make_unique<AreaUnderCurve>();
}

}  // namespace

MetricKind auc() {
  return {.name = "auc",
          .source = "scikit-learn: roc_auc_score",
          .help =
              "the area under the ROC curve: the share of pairs of a positive and a negative "
              "label whose positive has the larger score, equal ones counting one half",
          .better = Better::larger,
          .scores = binary_scores,
          .labels = "labels of both classes",
          .make = make_auc};
}

}  // namespace tandem::metrics
