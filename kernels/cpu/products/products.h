// The product kernels' lists, and what they ask of a request before anything else.
#pragma once

#include <optional>
#include <string>

#include "engine/device/kernel.h"

namespace tandem {

void add_matmul_kernels(KernelList& list);       // MatMul, Gemm, GemmSgd
void add_packed_kernels(KernelList& list);       // PackedMatMul, Unpack
void add_convolution_kernels(KernelList& list);  // Conv, ConvFused, ConvGradInput, ConvGradWeight
void add_pooling_kernels(KernelList& list);      // MaxPool, AveragePool and their gradients

/// Why operands other than float32, or a processor without AVX2, cannot do. Bit i of `ignored_…`
/// leaves operand i out.
std::optional<std::string> refuse_unless_float32(const KernelRequest& request,
                                                 unsigned ignored_inputs = 0,
                                                 unsigned ignored_outputs = 0);

}  // namespace tandem
