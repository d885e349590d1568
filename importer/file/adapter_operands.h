// The two factors of an adapter in the form in which the operators of an exported model read them.
#pragma once

#include <string>

#include "importer/import_graph.h"

namespace tandem {

/// `a` is multiplied first. Of a matrix they are [in, r] and [r, out], whatever the orientation of
/// the weight; of a convolution the kernels [r, in, k...] and [out, r, 1...].
struct AdapterOperands {
  std::string a_name, b_name;  // what the initializers or inputs are called
  HostTensor a, b;
};

/// Where adapters are inputs, `b` contains their scale, so that the model fits adapters of any.
AdapterOperands adapter_operands(const WeightAdapters& adapters);

}  // namespace tandem
