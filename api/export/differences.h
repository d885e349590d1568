// How far outputs of two computations lie apart.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/host_tensor.h"

namespace tandem::api {

struct Bound {
  /// |a - b| <= absolute + relative |b| + of_largest max |b|. The last term is for sums of
  /// products: their rounding error depends on the summands, even where the sum itself is small.
  double absolute = 0, relative = 0, of_largest = 0;
};

struct Difference {
  std::string by;       // what has computed the file: "engine", "onnxruntime"
  std::string output;   // name of the output
  double absolute = 0;  // the largest |a - b|; infinite where exactly one of them is NaN
  /// The largest |a - b| / |b|, over elements whose |b| is above what the bound allows without |b|.
  double relative = 0;
  bool agrees = true;
};

/// Compares element by element; NaN agrees with NaN, an infinity with itself. Tensors of different
/// shapes do not agree.
Difference difference_of(std::string by, std::string output, const HostTensor& a,
                         const HostTensor& b, const Bound& bound);

/// A line for people.
std::string to_text(const Difference& difference);

}  // namespace tandem::api
