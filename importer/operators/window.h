// Windows of convolution and pooling: auto_pad resolved, attributes checked.
#pragma once

#include "importer/node_context.h"

namespace tandem::importer::operators {

struct Windows {
  Ints kernel, strides, pads, dilations;
};

/// Reads strides, pads, dilations and auto_pad for the axes of input 0 after [N, C]. What auto_pad
/// means for a transposed convolution is left to that.
Windows read_windows(NodeContext& node, const Ints& kernel, bool transposed = false);

/// The result of Conv's inputs 0 to 2, of input 0's type.
Term convolution(NodeContext& node);

}  // namespace tandem::importer::operators
