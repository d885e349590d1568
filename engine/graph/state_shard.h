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
};

struct StateShard {
  ShardKind kind = ShardKind::rows;
  TensorType whole;
  int rank = 0, ranks = 1;

  /// [ceil(rows / ranks), columns...], or [ceil(elements / ranks)].
  TensorType part() const {
    const auto share = [&](std::int64_t count) { return (count + ranks - 1) / ranks; };
    if (kind == ShardKind::elements) return {whole.dtype, {share(whole.elements())}};
    TensorType type = whole;
    type.shape[0] = share(type.shape[0]);
    return type;
  }
};

/// What a policy asks for of a parameter.
enum class Sharding : std::uint8_t {
  rows,   // of a table and of its optimizer's states: ShardKind::rows
  state,  // of the optimizer's states alone (ZeRO-1): ShardKind::elements
};
/// By the parameter's name; those that are not there are whole on every rank.
using Shardings = std::map<std::string, Sharding>;

}  // namespace tandem
