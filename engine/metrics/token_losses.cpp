#include "engine/metrics/token_losses.h"

#include <algorithm>
#include <cmath>

#include "engine/metrics/class_scores.h"
#include "engine/metrics/metric_sums.h"

namespace tandem::metrics {
namespace {

/// log sum exp of score(0), score(1), …
template <class F>
double log_sum_exp(std::int64_t classes, F score) {
  double greatest = -std::numeric_limits<double>::infinity();
  for (std::int64_t c = 0; c < classes; ++c) greatest = std::max(greatest, score(c));
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(score(c) - greatest);
  return greatest + std::log(sum);
}

class OfTokenLosses final : public Metric {
 public:
  OfTokenLosses(double (*finish)(double), double parts) : finish_(finish), parts_(parts) {}

  void add(const MetricInput& input) override {
    if (input.labels.shape() == input.values.shape()) {
      add_probabilities(input);
      return;
    }
    each_row(input, input.ignore_index, [&](std::int64_t label, auto score, std::int64_t classes) {
      if (label < 0 || label >= classes) return;
      sum_ += log_sum_exp(classes, score) - score(label);
      ++count_;
    });
  }
  std::string sums() const override { return bytes_of(sum_, count_); }
  void add_sums(const std::string& sums) override { add_numbers(sums, sum_, count_); }
  double value() override {
    if (count_ == 0) return no_number;
    return finish_(sum_.value() / (parts_ * static_cast<double>(count_)));
  }

 private:
  void add_probabilities(const MetricInput& input) {
    const ClassAxes axes = class_axes(input.values.shape(), input.labels.shape());
    for (std::int64_t row = 0; row < axes.outer; ++row) {
      const auto place = [&](std::int64_t c) { return row * axes.classes + c; };
      const double whole =
          log_sum_exp(axes.classes, [&](std::int64_t c) { return input.values.number(place(c)); });
      double loss = 0;
      for (std::int64_t c = 0; c < axes.classes; ++c) {
        const double chance = input.labels.number(place(c));
        if (chance != 0) loss += chance * (whole - input.values.number(place(c)));
      }
      sum_ += loss;
    }
    count_ += axes.outer;
  }

  double (*finish_)(double);
  double parts_;
  ExactSum sum_;
  std::int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Metric> of_token_losses(double (*finish)(double mean), double parts) {
  return std::make_unique<OfTokenLosses>(finish, parts);
}

}  // namespace tandem::metrics
