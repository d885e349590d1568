// Segments of a plan: kernels of one device that can be launched as one captured graph, and what
// happens before and after it.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/lower/lowered.h"
#include "engine/plan/plan.h"

namespace tandem {

/// Part of `plan.launches`, all of it one accelerator's compute queue. It ends where another queue
/// or the host is needed: at a wait for something of this step other than fed inputs, and at a
/// record that others wait for, unless these copy an output that the host reads when the step ends.
struct Segment {
  int queue = 0;
  std::size_t begin = 0, end = 0;    // in plan.launches; kernels come first and last
  std::vector<std::size_t> kernels;  // launches that the graph holds
  std::vector<std::size_t> waits;    // launches that come before the graph
  std::vector<std::size_t> records;  // launches that come after the graph
  std::vector<int> slots;            // buffers of these kernels that change place between steps
};

/// Launching a graph costs about as much as launching this many kernels.
constexpr std::size_t least_kernels_of_segment = 4;

/// In the order of the launches. Segments hold no copies: input and output slots would multiply the
/// graphs, and how many rows a copy has is known late.
std::vector<Segment> find_segments(const Plan& plan, const Lowered& lowered);

}  // namespace tandem
