// Average precision: the area under the curve of precision over recall, in steps.
#include <algorithm>

#include "engine/metrics/metric_sums.h"
#include "engine/metrics/sorted_scores.h"

namespace tandem::metrics {
namespace {

class AveragePrecision final : public SortedScores {
 public:
  std::string undefined(const LabelSummary& labels) const override {
    return labels.positives == 0 ? "no label is positive" : "";
  }

 protected:
  /// The sum of (R_n - R_(n-1)) P_n over the scores, greatest first; equal scores are one step.
  double of_sorted(std::span<const std::uint64_t> sorted) const override {
    const auto positives = static_cast<std::uint64_t>(std::count_if(
        sorted.begin(), sorted.end(), [](std::uint64_t score) { return (score & 1) != 0; }));
    if (positives == 0) return no_number;
    double sum = 0;
    std::uint64_t found = 0, seen = 0;
    for (std::size_t end = sorted.size(); end > 0;) {
      const std::uint64_t score = sorted[end - 1] >> 1;
      std::uint64_t more = 0;
      for (; end > 0 && sorted[end - 1] >> 1 == score; --end, ++seen) more += sorted[end - 1] & 1;
      found += more;
      sum += static_cast<double>(more) * (static_cast<double>(found) / static_cast<double>(seen));
    }
    return sum / static_cast<double>(positives);
  }
};

std::unique_ptr<Metric> make_auc_pr(const MetricConfig&, unsigned) {
  return std::make_unique<AveragePrecision>();
}

}  // namespace

MetricKind auc_pr() {
  return {.name = "auc_pr",
          .source = "scikit-learn: average_precision_score",
          .help =
              "average precision: the sum of (R_n - R_(n-1)) P_n over all thresholds, with "
              "precision P and recall R",
          .better = Better::larger,
          .scores = binary_scores,
          .labels = "positive labels",
          .make = make_auc_pr};
}

}  // namespace tandem::metrics
