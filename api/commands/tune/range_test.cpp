#include "api/commands/tune/range_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "api/commands/pictures/picture.h"

namespace tandem::api {
namespace {

constexpr double kept_part = 0.9;  // weight of the previous mean in each step
constexpr double divergence_factor = 4;
// Number of points; before that the mean covers too few losses.
constexpr std::size_t settled_after = 5;
constexpr std::size_t slope_reach = 2;  // number of points to either side

}  // namespace

bool RangeTest::add(double lr, double loss) {
  RangePoint point{lr, loss, loss};
  if (!std::isfinite(loss)) {
    points_.push_back(point);
    diverged_ = lr;
    return false;
  }
  mean_ = kept_part * mean_ + (1 - kept_part) * loss;
  weight_ *= kept_part;
  point.smoothed = mean_ / (1 - weight_);
  points_.push_back(point);
  least_ = std::min(least_, point.smoothed);
  const bool is_far = least_ > 0 && point.smoothed > divergence_factor * least_;
  if (points_.size() <= settled_after || !is_far) return true;
  diverged_ = lr;
  return false;
}

double RangeTest::steepest() const {
  double best = 0, rate = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i = settled_after; i + slope_reach < points_.size(); ++i) {
    const RangePoint &before = points_[i - slope_reach], &after = points_[i + slope_reach];
    const double slope =
        (after.smoothed - before.smoothed) / (std::log(after.lr) - std::log(before.lr));
    if (!(slope < best)) continue;
    best = slope;
    rate = points_[i].lr;
  }
  return rate;
}

std::string to_csv(const RangeTest& test) {
  std::string text = "step,lr,loss,smoothed\n";
  for (std::size_t i = 0; i < test.points().size(); ++i) {
    const RangePoint& point = test.points()[i];
    text += fmt::format("{},{},{},{}\n", i + 1, point.lr, point.loss, point.smoothed);
  }
  return text;
}

std::string to_picture(const RangeTest& test) {
  Picture chart{.x_label = "learning rate", .y_label = "loss", .x_is_log = true};
  PictureSeries losses{.is_line = true, .is_faint = true}, means{.is_line = true};
  for (const RangePoint& point : test.points()) {
    // The diverged loss would flatten all others in the picture.
    if (point.lr == test.diverged()) continue;
    losses.points.push_back({point.lr, point.loss});
    means.points.push_back({point.lr, point.smoothed});
  }
  chart.series = {std::move(losses), std::move(means)};
  if (const double rate = test.steepest(); std::isfinite(rate))
    chart.marks.push_back({rate, fmt::format("steepest {:.2g}", rate)});
  if (const double rate = test.diverged(); std::isfinite(rate))
    chart.marks.push_back({rate, fmt::format("diverged {:.2g}", rate)});
  return to_svg("learning-rate range test", {chart});
}

}  // namespace tandem::api
