// Whether a plan fits into its devices, and which rule makes it fit where it does not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/device/device.h"
#include "engine/plan/plan.h"
#include "placement/resolve.h"

namespace tandem {

/// Bytes that a device of a policy may use: what the binding says, or all that it has.
std::size_t memory_limit(const ResolvedDevice& device, std::size_t capacity);
/// For a device that was opened: an accelerator has the limit in its own `memory_bytes`.
std::size_t memory_limit(const ResolvedDevice& device, const Device& opened);

/// Whether it is an accelerator, or the host with a limit in the policy: without one it may swap.
bool is_limited(const ResolvedPolicy& resolved, std::size_t device);

/// A rule that keeps the largest table of a device on the host with its lookups; nothing where
/// there is none.
std::optional<PolicyRule> rule_for_table(const ResolvedPolicy& resolved, int device);

/// Throws Error{does_not_fit} with the numbers and a rule to add where the plan needs more than
/// some accelerator has, or than the policy gives the cpu.
void check_fit(const Plan& plan, const ResolvedPolicy& resolved,
               const std::vector<Device*>& devices);

}  // namespace tandem
