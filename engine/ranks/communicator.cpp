#include "engine/ranks/communicator.h"

namespace tandem {

ExchangeBytes bytes_of(const Exchange& exchange, int rank, int ranks) {
  const std::size_t part = exchange.elements.count * size_of(exchange.elements.dtype),
                    all = part * static_cast<std::size_t>(ranks);
  switch (exchange.kind) {
    case CollectiveKind::all_reduce:
      return {part, part};
    case CollectiveKind::all_gather:
      return {part, all};
    case CollectiveKind::reduce_scatter:
      return {all, part};
    case CollectiveKind::all_to_all:
      return {all, all};
    case CollectiveKind::exchange_rows:
      return {part * exchange.counts.from_rows, part * exchange.counts.to_rows};
    case CollectiveKind::broadcast:
      return {rank == exchange.root ? part : 0, part};
  }
  return {};
}

}  // namespace tandem
