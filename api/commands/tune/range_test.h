// The learning-rate range test in numbers, computed from the losses of a sweep.
#pragma once

#include <limits>
#include <string>
#include <vector>

namespace tandem::api {

struct RangePoint {
  double lr = 0, loss = 0;
  double smoothed = 0;  // the exponential mean of the losses so far, without its bias to 0
};

/// Receives the losses of a sweep one by one, with rising rates.
class RangeTest {
 public:
  /// False once the loss has diverged: it is no number, or its mean is above 4 times the least one.
  bool add(double lr, double loss);

  const std::vector<RangePoint>& points() const { return points_; }
  /// The rate at which the mean falls fastest over the logarithm of the rate; NaN where it never
  /// falls.
  double steepest() const;
  /// The learning rate of the point that diverged; NaN where none has.
  double diverged() const { return diverged_; }

 private:
  std::vector<RangePoint> points_;
  double mean_ = 0;    // with its bias
  double weight_ = 1;  // remaining weight of the initial 0 in `mean_`
  double least_ = std::numeric_limits<double>::infinity();
  double diverged_ = std::numeric_limits<double>::quiet_NaN();
};

/// The header "step,lr,loss,smoothed", then a line per point.
std::string to_csv(const RangeTest& test);
/// As SVG.
std::string to_picture(const RangeTest& test);

}  // namespace tandem::api
