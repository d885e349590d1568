// The coefficient of determination.
#include <cmath>

#include "engine/metrics/metric_sums.h"

namespace tandem::metrics {
namespace {

/// Adds a * b without rounding the product.
void add_product(double a, double b, ExactSum& sum) {
  const double product = a * b;
  sum += product;
  if (std::isfinite(product)) sum += std::fma(a, b, -product);
}

class Determination final : public Metric {
 public:
  void add(const MetricInput& input) override {
    each_element(input, [&](double prediction, double target) {
      const double error = prediction - target;
      add_product(error, error, errors_);
      targets_ += target;
      add_product(target, target, squares_);
    });
    count_ += input.values.type().elements();
  }
  std::string sums() const override { return bytes_of(errors_, targets_, squares_, count_); }
  void add_sums(const std::string& sums) override {
    add_numbers(sums, errors_, targets_, squares_, count_);
  }
  double value() override {
    const double n = static_cast<double>(count_), spread = n_times_spread();
    return spread > 0 || std::isnan(spread) ? 1 - n * errors_.value() / spread : no_number;
  }
  std::string undefined(const LabelSummary& labels) const override {
    if (labels.count == 0) return "there is none";
    return labels.least == labels.greatest ? "all labels are equal" : "";
  }

 private:
  /// n sum (y - mean)² = n sum y² - (sum y)², whose terms may be far larger than their difference:
  /// each sum is taken as two doubles.
  double n_times_spread() const {
    const double n = static_cast<double>(count_);
    const auto in_two = [](ExactSum sum, double(&parts)[2]) {
      parts[0] = sum.value();
      sum += -parts[0];
      parts[1] = sum.value();
    };
    double sum[2], squares[2];
    in_two(targets_, sum);
    in_two(squares_, squares);
    ExactSum spread;
    for (const double part : squares) add_product(n, part, spread);
    add_product(-sum[0], sum[0], spread);
    add_product(-2 * sum[0], sum[1], spread);
    add_product(-sum[1], sum[1], spread);
    return spread.value();
  }

  ExactSum errors_, targets_, squares_;
  std::int64_t count_ = 0;
};

}  // namespace

MetricKind r2() {
  return {.name = "r2",
          .source = "scikit-learn: r2_score",
          .help =
              "1 - Σ (prediction - target)² / Σ (target - mean target)², over all elements "
              "together",
          .better = Better::larger,
          .scores = number_scores,
          .labels = "labels that differ",
          .make = plain<Determination>};
}

}  // namespace tandem::metrics
