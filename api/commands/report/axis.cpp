#include "api/commands/report/axis.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "api/commands/report/html.h"

namespace tandem::api {
namespace {

/// 1, 2 or 5 times a power of ten, at least `step`.
double round_step(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/// 1, 2, 4, … bytes: powers of two up to 512 of each unit.
double round_byte_step(double step) {
  return std::pow(2, std::ceil(std::log2(std::max(step, 1.0))));
}

/// Digits after the decimal point as needed for the distance of ticks.
std::string tick_label(double value, double step) {
  if (value == 0) return "0";
  const double size = std::max(std::abs(value), step);
  if (size >= 1e6 || size < 1e-4) {
    const int digits = std::max(0, static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9) -
                                                    std::floor(std::log10(step) + 1e-9)));
    return fmt::format("{:.{}e}", value, digits);
  }
  const int digits = std::max(0, -static_cast<int>(std::floor(std::log10(step) + 1e-9)));
  return digits == 0 ? number_text(std::round(value)) : fmt::format("{:.{}f}", value, digits);
}

/// Short, so that labels do not touch on narrow screens: "1,500", "20k", "1.5M".
std::string step_label(double value) {
  const double size = std::abs(value);
  if (size >= 1e6) return fmt::format("{:g}M", value / 1e6);
  return size >= 1e4 ? fmt::format("{:g}k", value / 1e3) : number_text(value);
}

std::string label_of(double value, double step, AxisKind kind) {
  if (kind == AxisKind::bytes) return bytes_text_of(value);
  return kind == AxisKind::steps ? step_label(value) : tick_label(value, step);
}

}  // namespace

Axis::Axis(double least, double greatest, AxisKind kind, int most_ticks)
    : least_(least), greatest_(greatest), kind_(kind) {
  if (!std::isfinite(least_) || !std::isfinite(greatest_)) least_ = 0, greatest_ = 1;
  // Smaller numbers lose digits, and fractions of them cannot be represented.
  constexpr double tiny = 1e-305;
  if (std::abs(least_) < tiny && std::abs(greatest_) < tiny) least_ = greatest_ = 0;
  if (kind_ == AxisKind::logarithmic && least_ < tiny) kind_ = AxisKind::linear;
  if (kind_ == AxisKind::logarithmic) {
    const double first = std::floor(std::log10(least_) + 1e-9);
    const double last = std::max(first + 1, std::ceil(std::log10(greatest_) - 1e-9));
    const double step = std::max(1.0, std::ceil((last - first) / most_ticks));
    least_ = std::pow(10, first);
    greatest_ = std::pow(10, last);
    for (double power = first; power <= last; power += step) {
      const double value = std::pow(10, power);
      const bool is_plain = power >= -3 && power <= 5;
      ticks_.push_back(
          {at(value), is_plain ? fmt::format("{:g}", value) : fmt::format("1e{:.0f}", power)});
    }
    return;
  }
  if (kind_ == AxisKind::bytes) least_ = 0;
  if (!(greatest_ > least_)) {  // a single value: adds room on both sides
    const double room = kind_ == AxisKind::steps || least_ == 0 ? 1 : std::abs(least_) * 0.1;
    if (kind_ != AxisKind::bytes) least_ -= room;
    greatest_ += room;
  }
  const double wanted = (greatest_ - least_) / most_ticks;
  double step = kind_ == AxisKind::bytes ? round_byte_step(wanted) : round_step(wanted);
  if (kind_ == AxisKind::steps) step = std::max(step, 1.0);
  const bool keeps_ends = kind_ == AxisKind::steps;
  const double first =
      keeps_ends ? std::ceil(least_ / step - 1e-9) : std::floor(least_ / step + 1e-9);
  const double last =
      keeps_ends ? std::floor(greatest_ / step + 1e-9) : std::ceil(greatest_ / step - 1e-9);
  if (!keeps_ends) {
    least_ = first * step;
    greatest_ = last * step;
  }
  // Counts in whole numbers: the width of a range far from 0 may be below the precision of its
  // values.
  const int count = std::clamp(static_cast<int>(last - first), 0, 4 * most_ticks);
  for (int k = 0; k <= count; ++k) {
    const double value = (first + k) * step;
    if (value < least_ || value > greatest_) continue;  // steps of less than one
    ticks_.push_back({at(value), label_of(value, step, kind_)});
  }
}

double Axis::at(double value) const {
  if (kind_ != AxisKind::logarithmic) {
    return greatest_ > least_ ? (value - least_) / (greatest_ - least_) : 0;
  }
  return std::log(value / least_) / std::log(greatest_ / least_);
}

}  // namespace tandem::api
