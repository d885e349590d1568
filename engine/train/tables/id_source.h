// Ids that a micro-batch is fed: found from the operand of a lookup, read from the slots of the
// inputs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/runtime/program.h"

namespace tandem {

/// Integers that are known when a micro-batch is over.
struct IdSource {
  int input = -1;                              // number of the program's input; -1: a constant
  std::shared_ptr<const HostTensor> constant;  // row-major
  DType dtype = DType::int64;
  Shape shape;
  Layout layout;  // where they lie in the input's slot or in the constant
  /// For a table with a cache: the source has only the ids that go to one of the two, see SplitIds.
  std::shared_ptr<const HostTensor> marks, ranks;
  std::int64_t table_rows = 0;
  bool cached = false;  // the places in the cache; else the ids for the table
  bool operator==(const IdSource&) const = default;
};

/// Where the elements of `ids` come from, looking through views and copies; nothing where the
/// micro-batch computes them.
std::optional<IdSource> source_of(const Lowered& lowered, ValueId ids);

/// Adds the ids of a micro-batch that has just been run; absent ones as absent_id<std::int64_t>.
void append_ids(const IdSource& source, Program& program, std::uint64_t ticket,
                std::vector<std::int64_t>& to);

/// Distinct rows of a table named by `ids`; negative ones count from its end, absent ones name
/// none, one outside names the nearest row. Changes `ids`.
std::int64_t count_unique(std::vector<std::int64_t>& ids, std::int64_t table_rows);

/// Null where no node makes the value.
const Node* producer_of(const Graph& graph, ValueId value);

/// The value before it was copied to another device, layout or type.
ValueId before_copies(const Graph& graph, ValueId value);

}  // namespace tandem
