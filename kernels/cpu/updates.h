// What the CPU's kernels for updates of dense states share.
#pragma once

#include <optional>
#include <string>

#include "engine/device/kernel.h"
#include "engine/operators/update_kind.h"

namespace tandem {

/// A reason where the operands of an update, or of many grouped, are not what vector code takes:
/// float32, gradients of one type, which may be of 16 bits, and all results wanted.
std::optional<std::string> refuse_update_operands(const KernelRequest& r);

/// "cpu.adam_update": the name of a kernel for one parameter; with a prefix "cpu.grouped_…".
std::string update_kernel_name(const UpdateKind& kind, const std::string& prefix = "");

/// The kernels of one kind: for one parameter, and for many grouped, which refuses other kinds.
void add_kernels_of_kind(KernelList& list, const UpdateKind& kind,
                         decltype(Kernel::propose) propose, decltype(Kernel::prepare) prepare);

}  // namespace tandem
