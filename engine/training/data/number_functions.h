// The functions that make a number of a number: the same arithmetic for cells of text and arrays.
#pragma once

#include <optional>

#include "engine/training/config/run_config.h"

namespace tandem {

/// The element type that a numeric function gives, float32 or int64; nothing of other kinds.
/// Whole numbers fit into 32 bits, which is how text tables store them.
std::optional<DType> number_type(TransformKind kind);
inline bool is_numeric(TransformKind kind) { return number_type(kind).has_value(); }
inline bool gives_whole_numbers(TransformKind kind) { return number_type(kind) == DType::int64; }

/// Of a numeric function, in double; whoever stores the result rounds it to the type above.
double apply(const Transform& function, double x);

}  // namespace tandem
