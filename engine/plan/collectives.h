// Operations over all ranks in a plan: which bytes each of them takes, and which buffers lie side
// by side so that one operation takes them all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace tandem {

/// Buffers that an AllReduce overwrites in place, in the order of its operands: the planner lays
/// those of a group one after the other. Groups of one buffer are left out.
std::vector<std::vector<int>> side_by_side(const Lowered& lowered, const Plan& plan);

/// One call of a communicator.
struct CollectiveCall {
  /// Where an operand begins: a buffer, and bytes in it.
  struct Place {
    int buffer = 0;
    std::size_t offset = 0;
  };
  struct Operand {
    Place from, to;
    /// Elements of both (AllReduce), of `from` (AllGather), of `to` (ReduceScatter), of one rank's
    /// part (AllToAll), of a row (ExchangeRows).
    std::int64_t elements = 0;
    /// AllGather, ReduceScatter: elements of the other one, which the parts need not fill.
    std::int64_t whole = 0;
  };
  /// All operands of a node that gathers or scatters; one operand for other nodes.
  std::vector<Operand> operands;
  DType dtype = DType::float32;
  /// ExchangeRows: where its counts are, and how many rows `from` and `to` have.
  Place sent, received;
  std::int64_t from_rows = 0, to_rows = 0;
};

/// The calls of a node, in their order: operands that are gathered or scattered form one call, and
/// so do sums that lie side by side, with the unused bytes between them. Operands without elements
/// are left out.
std::vector<CollectiveCall> collective_calls(const Lowered& lowered, const Plan& plan, NodeId node);

/// What all ranks must agree on: a line for each call, in the order in which a step launches them.
std::string collective_order(const Lowered& lowered, const Plan& plan);

}  // namespace tandem
