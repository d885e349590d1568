// How far a result is from the reference's: by norms over the whole tensor.
#pragma once

#include <cmath>
#include <limits>

#include "engine/graph/host_tensor.h"

namespace tandem::gpu_check {

/// |a - b| / |b| in the Euclidean norm over the elements that are finite in b; |a| if b = 0.
/// Infinity if an element that is not finite in b differs in a, or if integers or bools differ.
inline double distance(const HostTensor& a, const HostTensor& b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (a.shape() != b.shape()) return infinity;
  const bool exact = !is_float(a.dtype());
  double difference = 0, norm = 0;
  for (std::int64_t i = 0; i < b.type().elements(); ++i) {
    const double x = a.number(i), y = b.number(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) {
      if (std::isfinite(y)) norm += y * y;
      continue;
    }
    if (exact || !std::isfinite(x) || !std::isfinite(y)) return infinity;
    difference += (x - y) * (x - y);
    norm += y * y;
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

}  // namespace tandem::gpu_check
