#include "engine/ranks/communicator.h"

namespace tandem {

std::span<const RankParts> parts_of(const Exchange& exchange, int ranks, RankParts& one) {
  const bool has_parts = exchange.kind == CollectiveKind::all_gather ||
                         exchange.kind == CollectiveKind::reduce_scatter;
  if (!has_parts || !exchange.parts.empty()) return exchange.parts;
  const RankElements& elements = exchange.elements;
  one = {elements.from,
         elements.to,
         {elements.count, elements.count * static_cast<std::size_t>(ranks)}};
  return {&one, 1};
}

ExchangeBytes bytes_of(CollectiveKind kind, const PartSizes& sizes, DType dtype, int rank) {
  const std::size_t size = size_of(dtype), whole = sizes.whole * size;
  if (kind == CollectiveKind::reduce_scatter) return {whole, sizes.part * size};
  return {sizes.filled(rank) * size, whole};
}

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
