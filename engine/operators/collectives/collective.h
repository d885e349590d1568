// Operators over all ranks that train together. The number of ranks is the node's attribute
// `ranks`, so that shapes are static; a run of one rank has no such node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/operators/collectives/collective_cost.h"
#include "engine/operators/collectives/collective_kind.h"
#include "engine/operators/operator.h"

namespace tandem {

/// The kind of a node whose operator has the role `collective`.
CollectiveKind collective_kind(const Node& node);

inline constexpr const char* all_reduce_name = "AllReduce";
inline constexpr const char* all_gather_name = "AllGather";
inline constexpr const char* reduce_scatter_name = "ReduceScatter";
inline constexpr const char* all_to_all_name = "AllToAll";
inline constexpr const char* exchange_rows_name = "ExchangeRows";
/// An all_gather whose results overwrite states.
inline constexpr const char* gather_states_name = "GatherStates";

/// Values of the attribute `reduction`.
inline constexpr const char* sum_reduction = "sum";
inline constexpr const char* maximum_reduction = "maximum";

/// The inputs without the states that GatherStates overwrites.
std::vector<ValueId> given_values(const Node& node);

/// For exchanged rows: all that the shorter side has room for, or what is filled of the longer
/// side, whichever is more.
CollectiveWork collective_work(const Graph& graph, const Node& node);

namespace operators {

inline AttributeSpec ranks_attribute() { return {"ranks", std::int64_t{1}, true}; }
inline AttributeSpec reduction_attribute() { return {"reduction", std::string(sum_reduction)}; }

/// The number of ranks, which must be at least one.
std::int64_t require_ranks(const NodeView& node);
/// Like require_ranks; also requires axis 0 of input 0 to split into equal shards for them.
std::int64_t require_equal_parts(const NodeView& node);
/// Throws where the element type of input 0 does not have the reduction.
void require_reduction(const NodeView& node);
/// The attribute with which a gradient's exchange runs over the same ranks.
Attributes same_ranks(const GradientContext& context);
/// Throws for reductions other than sums, whose gradients are not known.
void require_sum_for_gradient(const GradientContext& context);

}  // namespace operators
}  // namespace tandem
