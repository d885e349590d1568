// Which nodes run in ranges of elements: element-wise updates whose operands cross between devices,
// and the copies that carry them, so that copies and update form a pipeline.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/lower/lowered.h"

namespace tandem {

/// Elements that ranges begin at a multiple of; kernels cut their work among threads there too, so
/// that a range computes the same bits as the whole.
constexpr std::int64_t range_alignment = 1024;

/// Per node: elements of a range, all ranges alike but the last, which may be shorter; 0: whole.
/// No range of any operand is longer than `range_bytes` (or `range_alignment` elements).
std::vector<std::int64_t> split_ranges(const Lowered& lowered, std::size_t range_bytes,
                                       bool deterministic);

struct ElementRange {
  std::int64_t begin = 0, count = 0;
};

/// The ranges of a node that `split_ranges` gave `length`.
class NodeRanges {
 public:
  NodeRanges(const Lowered& lowered, NodeId node, std::int64_t length)
      : total_(lowered.graph.type(lowered.graph.node(node).outputs[0]).elements()),
        length_(length) {}

  bool is_split() const { return length_ > 0; }
  int parts() const { return is_split() ? static_cast<int>((total_ + length_ - 1) / length_) : 1; }
  ElementRange part(int i) const {
    if (!is_split()) return {0, total_};
    return {i * length_, std::min(length_, total_ - i * length_)};
  }
  /// Operands that are cut; the others are scalars, which every range reads.
  bool cuts(const TensorType& type) const { return is_split() && type.elements() == total_; }

 private:
  std::int64_t total_, length_;
};

/// What a kernel is prepared for: the whole node (`elements` = 0), or a range of that many
/// elements, in which the operands that are cut are flat. `needed`: see planning_steps.h.
KernelRequest request_of(const Lowered& lowered, NodeId node, const std::vector<char>& needed,
                         bool deterministic, std::int64_t elements = 0);

}  // namespace tandem
