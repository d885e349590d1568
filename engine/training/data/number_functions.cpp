#include "engine/training/data/number_functions.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace tandem {

std::optional<DType> number_type(TransformKind kind) {
  switch (kind) {
    case TransformKind::log1p:
      return DType::float32;
    case TransformKind::bucketize:
      return DType::int64;
    case TransformKind::scale:
    case TransformKind::normalize:
    case TransformKind::cast:
    case TransformKind::flatten:
    case TransformKind::reshape:
    case TransformKind::one_hot:
    case TransformKind::resize:
    case TransformKind::random_crop:
    case TransformKind::random_flip:
    case TransformKind::missing:
    case TransformKind::split:
    case TransformKind::hash:
    case TransformKind::vocabulary:
      break;
  }
  return std::nullopt;
}

double apply(const Transform& function, double x) {
  switch (function.kind) {
    case TransformKind::log1p:
      return std::log1p(std::max(x, 0.0));
    case TransformKind::bucketize: {
      const std::vector<double>& bounds = function.bounds;
      return static_cast<double>(std::upper_bound(bounds.begin(), bounds.end(), x) -
                                 bounds.begin());
    }
    case TransformKind::scale:
    case TransformKind::normalize:
    case TransformKind::cast:
    case TransformKind::flatten:
    case TransformKind::reshape:
    case TransformKind::one_hot:
    case TransformKind::resize:
    case TransformKind::random_crop:
    case TransformKind::random_flip:
    case TransformKind::missing:
    case TransformKind::split:
    case TransformKind::hash:
    case TransformKind::vocabulary:
      break;
  }
  assert(false);
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace tandem
