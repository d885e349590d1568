// From resolved attributes to what `derive_placement` reads.
#pragma once

#include "placement/derive.h"
#include "placement/resolve.h"

namespace tandem {

/// Devices keep their indices. An added part ("loss.ce") that no rule placed is left open, so that
/// it follows what it reads.
ForwardPlacement forward_placement(const ResolvedPolicy& resolved);

}  // namespace tandem
