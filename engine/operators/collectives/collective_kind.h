// The collective operations of ranks that train together, as operators of the graph and as
// operations of a communicator.
#pragma once

#include <cstdint>

namespace tandem {

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  exchange_rows,
  broadcast,  // only in communicators
};

/// "all_reduce".
constexpr const char* name_of(CollectiveKind kind) {
  constexpr const char* names[] = {"all_reduce", "all_gather",    "reduce_scatter",
                                   "all_to_all", "exchange_rows", "broadcast"};
  return names[static_cast<int>(kind)];
}

constexpr bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter;
}

}  // namespace tandem
