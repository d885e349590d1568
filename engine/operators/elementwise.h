// What the element-wise operators share.
#pragma once

#include "engine/graph/builder.h"
#include "engine/operators/broadcast.h"
#include "engine/operators/checks.h"
#include "engine/operators/scalar_functions.h"

namespace tandem {

/// A reason for Operator::not_differentiable that gradient operators share.
inline constexpr const char* no_second_gradient =
    "part of a gradient; gradients of gradients are not offered";

}  // namespace tandem
