// The source of a fused kernel: C++ that NVRTC compiles for the GPU, and g++ for the host.
#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/pointwise/fused/fused_body.h"

namespace tandem::cuda {

/// How the loops go around a body.
enum class FusedForm : std::uint8_t {
  elements,  // no reduction
  rows,      // the innermost axis is reduced
  columns,   // the innermost axis is kept
};

/// How an operand's neighbours along the innermost axis lie.
enum class FusedAccess : std::uint8_t {
  unused,
  following,  // one after the other
  same,       // all in one place
  strided,
};

struct FusedLayout {
  FusedForm form = FusedForm::elements;
  int width = 4;   // elements of a unit
  int places = 1;  // operands with the same strides share one
  // Per operand: inputs, then outputs.
  std::vector<int> place_of;
  std::vector<FusedAccess> access;
};

/// Elements of a unit: 8 where all operands have at most 16 bits, else 4.
int fused_width(const KernelRequest& request, const FusedBody& body);

/// Source text of the kernel `fused`, whose only parameter is a FusedArguments; on the host `extern
/// "C" void fused(const LaunchShape&, const void*)`.
std::string fused_source(const KernelRequest& request, const FusedBody& body,
                         const FusedLayout& layout);

}  // namespace tandem::cuda
