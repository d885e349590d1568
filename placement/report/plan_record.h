// plan.json of a run directory: what memory holds over a step, and what is copied in it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/lower/lowered.h"
#include "engine/plan/plan.h"
#include "placement/resolve.h"

namespace tandem {

/// Bytes of a device's arena that are in use while an instruction runs.
struct LiveBytes {
  std::size_t launch = 0;  // place in Plan::launches
  std::size_t gradients = 0, activations = 0, workspace = 0;
  std::string path;  // the node's; "" for instructions without a node

  std::size_t all() const { return gradients + activations + workspace; }
  std::size_t& of(BufferKind kind) {
    if (kind == BufferKind::gradient) return gradients;
    return kind == BufferKind::workspace ? workspace : activations;
  }
};

/// In the order of launches, where something changes; if there are more than `most` points, the one
/// with the most bytes in each stretch. A buffer is in use from the first launch that touches it to
/// the last one.
std::vector<LiveBytes> live_bytes(const Lowered& lowered, const Plan& plan, int device,
                                  std::size_t most);

/// docs/formats.md has its members.
std::string plan_record_json(const Lowered& lowered, const Plan& plan,
                             const ResolvedPolicy& resolved);

}  // namespace tandem
