// The part of a state that one of several ranks keeps. All ranks have parts of one type, but of
// whole tables: what the whole does not fill is never read, and starts at zero.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

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
  /// products read, so that what one of them makes has the order in which the next one reads; of
  /// tables by columns.
  row_blocks,
  column_blocks,
  /// All rows of a table with one rank, its owner; the others have one row, which nobody looks up.
  table,
};

struct StateShard {
  ShardKind kind = ShardKind::rows;
  TensorType whole;
  int rank = 0, ranks = 1;
  int owner = 0;  // of ShardKind::table

  /// Of a table that lookups read: whether each row is with one rank, whole.
  bool keeps_rows() const { return kind == ShardKind::rows || kind == ShardKind::table; }

  /// [ceil(rows / ranks), columns...], [rows, ceil(columns / ranks)] or [ceil(elements / ranks)];
  /// of a table [rows, columns...] with its owner and [1, columns...] with the others.
  TensorType part() const {
    const auto share = [&](std::int64_t count) { return (count + ranks - 1) / ranks; };
    if (kind == ShardKind::elements) return {whole.dtype, {share(whole.elements())}};
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

/// What a policy asks for of a parameter.
enum class Sharding : std::uint8_t {
  rows,     // with the optimizer's states: of a table ShardKind::rows, of a matrix row_blocks
  state,    // of the optimizer's states alone (ZeRO-1): ShardKind::elements
  columns,  // of a table or matrix, with the optimizer's states: column_blocks
  state_and_gradient,  // as `state`, and of the gradient's sum within a step (ZeRO-2)
  table,               // whole tables, each with one rank: ShardKind::table
  heads,               // of a matrix beside attention: row_blocks or column_blocks, so that each
                       // rank has whole heads
};

/// The word of a policy.
constexpr std::string_view name_of(Sharding sharding) {
  constexpr std::string_view words[] = {"rows",           "state", "columns",
                                        "state+gradient", "table", "heads"};
  return words[static_cast<int>(sharding)];
}
/// What such parts are parts of, in the words of a policy; of flat ones "elements".
constexpr std::string_view word_of(ShardKind kind) {
  constexpr std::string_view words[] = {"rows", "elements", "rows", "columns", "table"};
  return words[static_cast<int>(kind)];
}

/// Whether every rank has the parameter itself, and parts of what training adds to it alone.
constexpr bool keeps_parameter_whole(Sharding sharding) {
  return sharding == Sharding::state || sharding == Sharding::state_and_gradient;
}
/// By the parameter's name; those that are not there are whole on every rank.
using Shardings = std::map<std::string, Sharding>;

}  // namespace tandem
