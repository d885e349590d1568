// The share of right decisions.
#include "engine/metrics/class_scores.h"
#include "engine/metrics/metric_sums.h"

namespace tandem::metrics {
namespace {

/// Logits [N, C], [N, d.., C] or [N, C, d..] against integer labels, one-hot labels of the logits'
/// shape, or one logit per sample against 0/1 labels (positive = class 1).
class Accuracy final : public Metric {
 public:
  void add(const MetricInput& input) override {
    const std::int64_t elements = input.values.type().elements();
    const Shape& shape = input.values.shape();
    const bool is_binary =
        input.labels.type().elements() == elements && (shape.size() < 2 || shape.back() == 1);
    if (is_binary) {
      for (std::int64_t i = 0; i < elements; ++i)
        correct_ += (input.values.number(i) > 0) == (input.labels.number(i) > 0.5);
      total_ += elements;
      return;
    }
    each_row(input, input.ignore_index, [&](std::int64_t label, auto score, std::int64_t classes) {
      correct_ += first_greatest(classes, score) == label;
      ++total_;
    });
  }
  std::string sums() const override { return bytes_of(correct_, total_); }
  void add_sums(const std::string& sums) override { add_numbers(sums, correct_, total_); }
  double value() override { return total_ == 0 ? 0 : static_cast<double>(correct_) / total_; }

 private:
  std::int64_t correct_ = 0, total_ = 0;
};

}  // namespace

MetricKind accuracy() {
  return {.name = "accuracy",
          .source = "scikit-learn: accuracy_score",
          .help =
              "the share of labels that are predicted: the first greatest score, or a score "
              "above 0 for yes",
          .better = Better::larger,
          .scores = class_scores | binary_scores,
          .make = plain<Accuracy>};
}

}  // namespace tandem::metrics
