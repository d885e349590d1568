// The formulas are those of Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective
// Communication Operations in MPICH"; the tree's are those of Sanders, Speck and Traeff 2009,
// "Two-tree algorithms for full bandwidth broadcast, reduction and scan".
#include "engine/operators/collectives/collective_cost.h"

#include <cassert>
#include <cmath>
#include <limits>

namespace tandem {
namespace {

using PossibleCost = std::optional<CollectiveCost>;

// A rank sends all parts but its own.
double other_parts(const CollectiveWork& work) {
  return (work.ranks - 1) / work.ranks * work.bytes;
}

// Parts go from each rank to the next one.
PossibleCost ring_cost(const CollectiveWork& work) {
  const double messages = work.ranks - 1, bytes = other_parts(work);
  switch (work.kind) {
    case CollectiveKind::all_reduce:
      return CollectiveCost{2 * messages, 2 * bytes, bytes};
    case CollectiveKind::all_gather:
      return CollectiveCost{messages, bytes, 0};
    case CollectiveKind::reduce_scatter:
      return CollectiveCost{messages, bytes, bytes};
    default:
      return std::nullopt;
  }
}

// Two binary trees, each with half of the bytes: the inner ranks of one are the leaves of the
// other. Sums go to the roots and come back.
PossibleCost tree_cost(const CollectiveWork& work) {
  if (work.kind != CollectiveKind::all_reduce) return std::nullopt;
  return CollectiveCost{2 * std::ceil(std::log2(work.ranks)), 2 * work.bytes, work.bytes};
}

// A rank sends one message to every other rank, without waiting in between. The first one counts
// whole, and every further one an eighth: sending takes about an eighth of a message's latency.
double messages_at_once(const CollectiveWork& work) { return 1 + (work.ranks - 2) / 8; }

// Each rank sends each other one its part; sums come back in the same way.
PossibleCost direct_cost(const CollectiveWork& work) {
  const double messages = messages_at_once(work), bytes = other_parts(work);
  switch (work.kind) {
    case CollectiveKind::all_reduce:
      return CollectiveCost{2 * messages, 2 * bytes, bytes};
    case CollectiveKind::reduce_scatter:
      return CollectiveCost{messages, bytes, bytes};
    default:
      return CollectiveCost{messages, bytes, 0};
  }
}

// NCCL has only the exchanges without sums.
PossibleCost direct_exchange_cost(const CollectiveWork& work) {
  const bool is_exchange =
      work.kind == CollectiveKind::all_to_all || work.kind == CollectiveKind::exchange_rows;
  return is_exchange ? direct_cost(work) : std::nullopt;
}

// Each rank sends each other one all that it has, and adds up everything.
PossibleCost whole_cost(const CollectiveWork& work) {
  if (work.kind != CollectiveKind::all_reduce) return std::nullopt;
  const double bytes = (work.ranks - 1) * work.bytes;
  return CollectiveCost{messages_at_once(work), bytes, bytes};
}

// The ranks beyond a power of two give all of their bytes to others before the steps of a sum, and
// get the sum afterwards.
CollectiveCost with_extra_ranks(CollectiveCost cost, const CollectiveWork& work) {
  if (std::exp2(std::floor(std::log2(work.ranks))) == work.ranks) return cost;
  return {cost.messages + 2, cost.bytes + 2 * work.bytes, cost.added + work.bytes};
}

// Pairs of ranks exchange all that they have, and add it up.
PossibleCost doubling_cost(const CollectiveWork& work) {
  if (work.kind != CollectiveKind::all_reduce) return std::nullopt;
  const double steps = std::floor(std::log2(work.ranks)), bytes = steps * work.bytes;
  return with_extra_ranks({steps, bytes, bytes}, work);
}

// Pairs of ranks exchange halves, of which each adds up one, then halves of these, ...; sums come
// back in the opposite order.
PossibleCost halving_cost(const CollectiveWork& work) {
  if (work.kind != CollectiveKind::all_reduce) return std::nullopt;
  const double steps = std::floor(std::log2(work.ranks));
  const double bytes = (1 - std::exp2(-steps)) * work.bytes;
  return with_extra_ranks({2 * steps, 2 * bytes, bytes}, work);
}

}  // namespace

std::span<const CollectiveAlgorithm> all_collective_algorithms() {
  static constexpr CollectiveAlgorithm all[] = {
      {CollectiveMethod::ring, "ring", CollectiveLibrary::nccl, ring_cost},
      {CollectiveMethod::tree, "tree", CollectiveLibrary::nccl, tree_cost},
      {CollectiveMethod::doubling, "doubling", CollectiveLibrary::messages, doubling_cost},
      {CollectiveMethod::halving, "halving", CollectiveLibrary::messages, halving_cost},
      {CollectiveMethod::whole, "whole", CollectiveLibrary::messages, whole_cost},
      {CollectiveMethod::direct, "direct", CollectiveLibrary::messages, direct_cost},
      {CollectiveMethod::direct, "direct", CollectiveLibrary::nccl, direct_exchange_cost},
  };
  return all;
}

ChosenCollective choose_collective(CollectiveLibrary library, const CollectiveWork& work,
                                   double bytes_a_message) {
  constexpr double add_by_send = 0.25;  // adding a byte takes a quarter of the time of sending it
  ChosenCollective chosen;
  double least = std::numeric_limits<double>::infinity();
  for (const CollectiveAlgorithm& algorithm : all_collective_algorithms()) {
    if (algorithm.library != library) continue;
    const PossibleCost cost = algorithm.cost(work);
    if (!cost) continue;
    const double bytes = cost->messages * bytes_a_message + cost->bytes + add_by_send * cost->added;
    if (bytes >= least) continue;
    least = bytes;
    chosen = {&algorithm, *cost};
  }
  assert(chosen.algorithm != nullptr);
  // Its ranks first send their neighbours which operation they run.
  if (library == CollectiveLibrary::messages) ++chosen.cost.messages;
  return chosen;
}

}  // namespace tandem
