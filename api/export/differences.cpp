#include "api/export/differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tandem::api {

Difference difference_of(std::string by, std::string output, const HostTensor& a,
                         const HostTensor& b, const Bound& bound) {
  constexpr double apart = std::numeric_limits<double>::infinity();
  Difference result{.by = std::move(by), .output = std::move(output)};
  if (a.shape() != b.shape()) {
    result.absolute = result.relative = apart;
    result.agrees = false;
    return result;
  }
  double largest = 0;
  for (std::int64_t i = 0; bound.of_largest > 0 && i < b.type().elements(); ++i) {
    const double y = std::abs(b.number(i));
    if (std::isfinite(y)) largest = std::max(largest, y);
  }
  const double absolute = bound.absolute + bound.of_largest * largest;
  for (std::int64_t i = 0; i < a.type().elements(); ++i) {
    const double x = a.number(i), y = b.number(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double distance = std::isfinite(x) && std::isfinite(y) ? std::abs(x - y) : apart;
    result.absolute = std::max(result.absolute, distance);
    if (!(std::abs(y) <= absolute))
      result.relative =
          std::max(result.relative, std::isfinite(distance) ? distance / std::abs(y) : apart);
    if (!(distance <= absolute + bound.relative * std::abs(y))) result.agrees = false;
  }
  return result;
}

std::string to_text(const Difference& d) {
  return fmt::format("{:<11} {}: largest difference {:.3g}, relative {:.3g}{}", d.by, d.output,
                     d.absolute, d.relative, d.agrees ? "" : "  DIFFERS");
}

}  // namespace tandem::api
