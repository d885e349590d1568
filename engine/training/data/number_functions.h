// The functions that make a number of a number: the same arithmetic for cells of text and arrays.
#pragma once

#include "engine/training/config/run_config.h"

namespace tandem {

struct NumberFunction {
  /// Of what it gives: float32, or int64 for whole numbers, which fit into 32 bits: text tables
  /// store them so.
  DType type = DType::float32;
  /// In double; whoever stores the result rounds it to the type above.
  double (*apply)(const Transform& function, double x) = nullptr;

  bool gives_whole_numbers() const { return type == DType::int64; }
};

/// Null for the other kinds of functions.
const NumberFunction* number_function(TransformKind kind);

}  // namespace tandem
