// The shard of a state that one of several ranks keeps. The shards of all ranks have the same type,
// except for ShardKind::table; padding, which the whole does not fill, is never read and starts at
// zero.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "engine/graph/types.h"

namespace tandem {

/// Which rank has an element of the whole.
enum class ShardKind : std::uint8_t {
  /// Row r of the whole is row r / ranks on rank r % ranks, so that the frequent rows of a sorted
  /// vocabulary are spread over all of them.
  rows,
  /// The row-major elements in equal pieces, in the order of the ranks. The shard is flat.
  elements,
  /// Equal blocks of neighbouring rows, or of columns of a matrix, in the order of the ranks. They
  /// shard what products read, so that the result of one product has the order in which the next
  /// one reads it, and tables by columns.
  row_blocks,
  column_blocks,
  /// One rank, the owner, has all rows of a table; the others have one row, which is never looked
  /// up.
  table,
};

struct StateShard {
  ShardKind kind = ShardKind::rows;
  TensorType whole;
  int rank = 0, ranks = 1;
  int owner = 0;  // for ShardKind::table
  /// For ShardKind::elements: this many neighbours are never cut apart.
  std::int64_t unit = 1;

  /// For a table that lookups read: whether each row lies whole on one rank.
  bool keeps_rows() const { return kind == ShardKind::rows || kind == ShardKind::table; }

  /// [ceil(rows / ranks), columns...], [rows, ceil(columns / ranks)] or, flat, [unit * ceil(units /
  /// ranks)];
  /// for ShardKind::table [rows, columns...] on the owner and [1, columns...] on the others.
  TensorType part() const {
    const auto share = [&](std::int64_t count) { return (count + ranks - 1) / ranks; };
    if (kind == ShardKind::elements)
      return {whole.dtype, {unit * share((whole.elements() + unit - 1) / unit)}};
    TensorType type = whole;
    if (kind == ShardKind::table) {
      if (rank != owner) type.shape[0] = 1;
      return type;
    }
    std::int64_t& extent = type.shape[kind == ShardKind::column_blocks ? 1 : 0];
    extent = share(extent);
    return type;
  }
};

/// What a policy asks to shard of a parameter.
enum class Sharding : std::uint8_t {
  rows,     // with its optimizer states: a table by ShardKind::rows, a matrix by row_blocks
  state,    // only the optimizer states (ZeRO-1): ShardKind::elements
  columns,  // a table or matrix with its optimizer states: column_blocks
  state_and_gradient,  // like `state`, and the gradient's sum within a step (ZeRO-2)
  table,               // whole tables, each on one rank: ShardKind::table
  heads,               // a matrix next to attention: row_blocks or column_blocks, so that each
                       // rank has whole heads
};

/// The word of a policy.
constexpr std::string_view name_of(Sharding sharding) {
  constexpr std::string_view words[] = {"rows",           "state", "columns",
                                        "state+gradient", "table", "heads"};
  return words[static_cast<int>(sharding)];
}
/// The unit that such shards consist of, in the words of a policy; "elements" for flat ones.
constexpr std::string_view word_of(ShardKind kind) {
  constexpr std::string_view words[] = {"rows", "elements", "rows", "columns", "table"};
  return words[static_cast<int>(kind)];
}

/// Whether every rank has the whole parameter, and only what training adds to it is sharded.
constexpr bool keeps_parameter_whole(Sharding sharding) {
  return sharding == Sharding::state || sharding == Sharding::state_and_gradient;
}
/// Shardings by parameter name; parameters that are not listed are whole on every rank.
using Shardings = std::map<std::string, Sharding>;

}  // namespace tandem
