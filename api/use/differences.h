// How far outputs of two computations lie apart.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/host_tensor.h"

namespace tandem::api {

struct Bound {
  /// |a - b| <= absolute + relative |b| + of_largest max |b|, as sums of products round by what is
  /// added up, however little is left of it.
  double absolute = 0, relative = 0, of_largest = 0;
};

struct Difference {
  std::string by;       // who has computed the file: "engine", "onnxruntime"
  std::string output;   // its name
  double absolute = 0;  // the largest |a - b|; infinite where one of them alone is no number
  /// The largest |a - b| / |b| where |b| is above what the bound allows without |b|.
  double relative = 0;
  bool agrees = true;
};

/// Element by element; NaN agrees with NaN, infinities with themselves. Tensors of other shapes do
/// not agree.
Difference difference_of(std::string by, std::string output, const HostTensor& a,
                         const HostTensor& b, const Bound& bound);

/// A line for people.
std::string to_text(const Difference& difference);

}  // namespace tandem::api
