// Runs a TileProgram over an index space: scalar operators, fused bodies and reductions.
#pragma once

#include "engine/device/kernel.h"

namespace tandem {

std::optional<std::string> refuse_tiles(const KernelRequest& request);
std::vector<Proposal> propose_tiles(const KernelRequest& request);
/// Dense operands over the whole index space share the order that the first of them has, and dense
/// results get it; all other operands may come as they are.
Proposal one_order(const KernelRequest& request, const Shape& space);
std::unique_ptr<PreparedKernel> prepare_tiles(const KernelRequest& request);

/// "cpu.NAME" for operator `op`, run by the interpreter.
Kernel tile_kernel(std::string name, std::string op);

}  // namespace tandem
