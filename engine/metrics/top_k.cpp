// The share of labels that are among the k greatest scores. top_5 is the usual k.
#include <cmath>

#include "engine/config/keys/key_visitor.h"
#include "engine/metrics/class_scores.h"
#include "engine/metrics/metric_sums.h"

namespace tandem::metrics {
namespace {

struct TopKOptions final : KindOptions {
  std::int64_t k = 5;
  void visit(KeyVisitor& v) override {
    v.key("k", k, between(1, 1 << 30), "how many of the greatest scores count");
  }
};

class TopK final : public Metric {
 public:
  explicit TopK(std::int64_t k) : k_(k) {}

  /// Among equal scores the first ones count as greater, as in accuracy; NaN as greater than any.
  void add(const MetricInput& input) override {
    each_row(input, input.ignore_index, [&](std::int64_t label, auto score, std::int64_t classes) {
      ++total_;
      if (label < 0 || label >= classes || std::isnan(score(label))) return;
      const double own = score(label);
      std::int64_t before = 0;
      for (std::int64_t c = 0; c < classes; ++c) {
        const double one = score(c);
        before += c != label && (!(one <= own) || (one == own && c < label));
      }
      correct_ += before < k_;
    });
  }
  std::string sums() const override { return bytes_of(correct_, total_); }
  void add_sums(const std::string& sums) override { add_numbers(sums, correct_, total_); }
  double value() override { return total_ == 0 ? 0 : static_cast<double>(correct_) / total_; }

  std::string unfit(const TensorType& values, const TensorType& labels) const override {
    if (class_axes(values.shape, labels.shape).classes > k_) return "";
    return "more than " + std::to_string(k_) +
           " classes: with fewer every label is among the greatest scores";
  }

 private:
  std::int64_t k_, correct_ = 0, total_ = 0;
};

std::unique_ptr<Metric> make_top_5(const MetricConfig&, unsigned) {
  return std::make_unique<TopK>(5);
}
std::unique_ptr<Metric> make_top_k(const MetricConfig& metric, unsigned) {
  return std::make_unique<TopK>(metric.options.as<TopKOptions>().k);
}
std::string name_with_k(const MetricConfig& metric) {
  return "top_" + std::to_string(metric.options.as<TopKOptions>().k);
}

}  // namespace

MetricKind top_k() {
  return {.name = "top_k",
          .source = "scikit-learn: top_k_accuracy_score",
          .help = "the share of labels whose score is among the k greatest",
          .options = TopKOptions{},
          .better = Better::larger,
          .scores = class_scores,
          .default_name = name_with_k,
          .make = make_top_k};
}

MetricKind top_5() {
  return {.name = "top_5",
          .source = "scikit-learn: top_k_accuracy_score",
          .help = "top_k with k = 5",
          .better = Better::larger,
          .scores = class_scores,
          .make = make_top_5};
}

}  // namespace tandem::metrics
