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
  /// Along one axis equal blocks of neighbours, in the order of the ranks: of a matrix that
  /// products
  /// read, so that what one of them makes has the order in which the next one reads.
  blocks,
};

struct StateShard {
  ShardKind kind = ShardKind::rows;
  TensorType whole;
  int rank = 0, ranks = 1;
  std::int64_t axis = 0;  // of blocks

  /// [ceil(rows / ranks), columns...] or the same of the axis, or [ceil(elements / ranks)].
  TensorType part() const {
    const auto share = [&](std::int64_t count) { return (count + ranks - 1) / ranks; };
    if (kind == ShardKind::elements) return {whole.dtype, {share(whole.elements())}};
    TensorType type = whole;
    std::int64_t& extent = type.shape[static_cast<std::size_t>(axis)];
    extent = share(extent);
    return type;
  }
};

/// What a policy asks for of a parameter.
enum class Sharding : std::uint8_t {
  rows,     // with the optimizer's states: of a table ShardKind::rows, of a matrix blocks of axis 0
  columns,  // of a matrix that products read, with the optimizer's states: blocks of axis 1
  state,    // of the optimizer's states alone (ZeRO-1): ShardKind::elements
};
/// By the parameter's name; those that are not there are whole on every rank.
using Shardings = std::map<std::string, Sharding>;

}  // namespace tandem
