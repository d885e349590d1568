// The part of a state that one of several ranks keeps. All ranks have parts of one type: what the
// whole does not fill is never read, and starts at zero.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/graph/types.h"

namespace tandem {

/// Whose an element of the whole is.
enum class ShardKind : std::uint8_t {
  /// Row r is row r / ranks of rank r % ranks, so that the frequent rows of a sorted vocabulary are
  /// spread over all of them.
  rows,
  /// Row-major elements in equal pieces, in the order of the ranks. The part is flat.
  elements,
  /// Equal blocks of neighbouring rows, or columns of a matrix, in the order of the ranks: of what
  /// products read, so that what one of them makes has the order in which the next one reads.
  row_blocks,
  column_blocks,
};

struct StateShard {
  ShardKind kind = ShardKind::rows;
  TensorType whole;
  int rank = 0, ranks = 1;

  /// [ceil(rows / ranks), columns...], [rows, ceil(columns / ranks)] or [ceil(elements / ranks)].
  TensorType part() const {
    const auto share = [&](std::int64_t count) { return (count + ranks - 1) / ranks; };
    if (kind == ShardKind::elements) return {whole.dtype, {share(whole.elements())}};
    TensorType type = whole;
    std::int64_t& extent = type.shape[kind == ShardKind::column_blocks ? 1 : 0];
    extent = share(extent);
    return type;
  }
};

/// What a policy asks for of a parameter.
enum class Sharding : std::uint8_t {
  rows,     // with the optimizer's states: of a table ShardKind::rows, of a matrix row_blocks
  state,    // of the optimizer's states alone (ZeRO-1): ShardKind::elements
  columns,  // of a matrix that products read, with the optimizer's states: column_blocks
};
/// By the parameter's name; those that are not there are whole on every rank.
using Shardings = std::map<std::string, Sharding>;

}  // namespace tandem
