// Where each element of Pad's result comes from, axis by axis.
#pragma once

#include <vector>

#include "engine/graph/graph.h"

namespace tandem::reference {

/// [axis][i]: the index in x of y's index i; -1 in a constant border.
using PadTable = std::vector<Ints>;

/// The table for the attributes `pads` and `mode` of Pad.
PadTable pad_table(const Attributes& attributes, const Shape& x);

}  // namespace tandem::reference
