// What an operation over all ranks costs under each algorithm, of which a library takes the
// cheapest.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/operators/collectives/collective_kind.h"

namespace tandem {

/// Who carries out operations over ranks.
enum class CollectiveLibrary : std::uint8_t {
  messages,  // engine/ranks, in the host's memory
  nccl,      // between GPUs
};

struct CollectiveWork {
  CollectiveKind kind = CollectiveKind::all_reduce;
  double ranks = 2;
  /// An all_reduce: its operand. The other kinds: the parts of all ranks together.
  double bytes = 0;
};

/// What one rank does, where all ranks do it at the same time.
struct CollectiveCost {
  /// Messages that wait for each other, and an eighth of those that are under way at the same time.
  double messages = 0;
  double bytes = 0;  // sent by it
  double added = 0;  // bytes that it adds to others
};

enum class CollectiveMethod : std::uint8_t { ring, tree, doubling, halving, whole, direct };

struct CollectiveAlgorithm {
  CollectiveMethod method;
  const char* name;  // as `policy plan` prints it
  CollectiveLibrary library;
  /// Nothing where the algorithm does not do such an operation.
  std::optional<CollectiveCost> (*cost)(const CollectiveWork& work);
};

std::span<const CollectiveAlgorithm> all_collective_algorithms();

/// How many bytes a network sends in the time of a message, as CollectiveLibrary::messages assumes
/// it for all networks: 25 Gb/s and 10 us.
inline constexpr double assumed_bytes_a_message = 32 << 10;

struct ChosenCollective {
  const CollectiveAlgorithm* algorithm = nullptr;
  CollectiveCost cost;
};
/// The algorithm that the library takes on such a network.
ChosenCollective choose_collective(CollectiveLibrary library, const CollectiveWork& work,
                                   double bytes_a_message);

}  // namespace tandem
