// What ranks that train together do at once: operators of the graph, operations of a communicator.
#pragma once

#include <cstdint>

namespace tandem {

enum class CollectiveKind : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  exchange_rows,
  broadcast,  // of communicators alone
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
