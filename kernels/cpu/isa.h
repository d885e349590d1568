// Which vector instructions this processor offers, and which of them a kernel uses.
#pragma once

#include <string>
#include <vector>

#include "engine/device/kernel.h"

namespace tandem {

/// Instruction sets for which kernels are written. Each includes those before it.
enum class Isa { baseline, avx2, avx512 };

/// Features of the processor this runs on, as in DeviceFacts: "avx2" (with FMA), "avx512" (F, BW,
/// DQ, VL), "avx512_bf16", "amx" (tiles with bf16). What the operating system does not save is left
/// out.
std::vector<std::string> processor_features();

/// The widest set that these facts allow. Facts with only "avx2" give the AVX2 form on any machine.
Isa isa_of(const DeviceFacts& facts);

}  // namespace tandem
