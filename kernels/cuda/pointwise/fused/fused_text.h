// How element types and numbers are called in generated kernels.
#pragma once

#include <string>

#include "engine/graph/types.h"

namespace tandem::cuda {

/// How elements of the type are stored, and what they compute in.
const char* stored_name(DType dtype);
const char* computed_name(DType dtype);
bool is_half(DType dtype);  // a float of 16 bits

/// A number of a type, by its bits, with what it is as a comment.
std::string number_text(DType dtype, double number);

}  // namespace tandem::cuda
