// Runs every vector kernel that takes a node, in each layout it proposes, with each instruction set
// and team size, against the reference kernel.
#pragma once

#include <string>
#include <vector>

#include "engine/device/kernel.h"
#include "engine/graph/attributes.h"
#include "engine/graph/types.h"

namespace tandem::testing {

struct ProductCase {
  std::string op;
  std::vector<Shape> inputs;  // float32; see `absent`
  Attributes attributes;
  std::vector<int> absent;  // inputs left out
  std::vector<std::vector<int>>
      orders;               // per input: axes from outermost to innermost where not as proposed
  double tolerance = 2e-5;  // relative to the largest magnitude of the reference
  std::vector<std::string> kernels;  // these must be among the kernels that ran
};

/// Adds test failures that name the kernel, layout, instruction set and team size.
void check_product(const ProductCase& product);

/// Attributes of a convolution; `pads` has begins, then ends.
Attributes conv_attributes(Ints strides, Ints pads, Ints dilations = {1, 1},
                           std::int64_t group = 1);

}  // namespace tandem::testing
