// In which layouts kernels take the operands of updates, on every device.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/device/kernel.h"

namespace tandem {

/// How many updates the node is: `count` of a GroupedUpdate, else 1.
std::int64_t update_count(const KernelRequest& r);
/// All tensors of one update lie alike: as the master does where that is dense, else row-major.
std::vector<Proposal> propose_update(const KernelRequest& r);

}  // namespace tandem
