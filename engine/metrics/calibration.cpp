// The number of predicted positive labels, divided by the number of actual ones.
#include "engine/metrics/metric_sums.h"
#include "engine/metrics/predicted_values.h"

namespace tandem::metrics {
namespace {

class Calibration final : public Metric {
 public:
  void add(const MetricInput& input) override {
    each_element(input, [&](double logit, double label) {
      predicted_ += sigmoid(logit);
      labels_ += label;
    });
  }
  std::string sums() const override { return bytes_of(predicted_, labels_); }
  void add_sums(const std::string& sums) override { add_numbers(sums, predicted_, labels_); }
  double value() override {
    const double labels = labels_.value();
    return labels == 0 ? no_number : predicted_.value() / labels;
  }
  std::string undefined(const LabelSummary& labels) const override {
    return labels.sum == 0 ? "no label is positive" : "";
  }

 private:
  ExactSum predicted_, labels_;
};

}  // namespace

MetricKind calibration() {
  return {.name = "calibration",
          .source = "the mean prediction divided by the mean label",
          .help =
              "the mean of sigmoid(logit) divided by the mean label: 1 where as many positives "
              "are predicted as there are",
          .better = Better::neither,
          .scores = binary_logits,
          .labels = "positive labels",
          .make = plain<Calibration>};
}

}  // namespace tandem::metrics
