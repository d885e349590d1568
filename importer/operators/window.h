// Windows of convolution and pooling: auto_pad resolved, attributes checked.
#pragma once

#include "importer/operators/all.h"

namespace tandem::importer {

struct Windows {
  Ints kernel, strides, pads, dilations;
};

/// Reads strides, pads, dilations and auto_pad for the axes of input 0 after [N, C].
Windows read_windows(NodeContext& node, const Ints& kernel);

}  // namespace tandem::importer
