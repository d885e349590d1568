// Where the rows of a table sharded by rows are: row r is row r / ranks of rank r % ranks
// (ShardKind::rows). Its place counts through the shards of all ranks, one after the other, so that
// ascending places are grouped by rank.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "engine/operators/operator.h"
#include "engine/operators/tables/rows.h"

namespace tandem {

struct ShardedRows {
  std::int64_t rows = 0, ranks = 1;  // the whole table's rows; how many ranks share it

  /// Rows of each rank's shard; in some shards the last one is not a row of the table.
  std::int64_t part() const { return (rows + ranks - 1) / ranks; }
  /// Rows of all shards together.
  std::int64_t places() const { return part() * ranks; }
  /// The type of places: int32 where all fit.
  DType place_type() const { return fitting(places()); }
  /// The type of row numbers in a shard.
  DType row_type() const { return fitting(part()); }
  std::int64_t place(std::int64_t row) const { return row % ranks * part() + row / ranks; }
  /// The row that an id names; -1 where it is absent. An id out of range names the nearest row and
  /// makes `outside` true.
  template <class Id>
  std::int64_t row_of(Id id, bool& outside) const {
    if (id == absent_id<Id>) return -1;
    const std::int64_t row = id < 0 ? static_cast<std::int64_t>(id) + rows : std::int64_t{id};
    outside = row < 0 || row >= rows;
    return outside ? (row < 0 ? 0 : rows - 1) : row;
  }

 private:
  static DType fitting(std::int64_t count) {
    return count <= std::numeric_limits<std::int32_t>::max() ? DType::int32 : DType::int64;
  }
};

/// The rows and ranks of the node's attributes; both are at least 1.
inline ShardedRows checked_shards(const NodeView& node) {
  for (const char* name : {"rows", "ranks"}) {
    const std::int64_t count = node.attributes().integer(name);
    if (count < 1)
      node.fail(std::string(name) + " is out of range", "at least 1", std::to_string(count));
  }
  return {node.attributes().integer("rows"), node.attributes().integer("ranks")};
}

}  // namespace tandem
