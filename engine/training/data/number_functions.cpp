#include "engine/training/data/number_functions.h"

#include <algorithm>
#include <cmath>

namespace tandem {
namespace {

double log1p(const Transform&, double x) { return std::log1p(std::max(x, 0.0)); }

double bucketize(const Transform& function, double x) {
  const std::vector<double>& bounds = function.bounds;
  return static_cast<double>(std::upper_bound(bounds.begin(), bounds.end(), x) - bounds.begin());
}

}  // namespace

const NumberFunction* number_function(TransformKind kind) {
  static constexpr NumberFunction of_log1p{DType::float32, log1p};
  static constexpr NumberFunction of_bucketize{DType::int64, bucketize};
  switch (kind) {
    case TransformKind::log1p:
      return &of_log1p;
    case TransformKind::bucketize:
      return &of_bucketize;
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
  return nullptr;
}

}  // namespace tandem
