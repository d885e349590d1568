// What is made of the columns of a text table: per field, the functions that act on text.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/graph/host_tensor.h"
#include "engine/training/config/run_config.h"
#include "engine/training/data/vocabulary.h"

namespace tandem {

struct VocabularyPlan {
  std::string name;
  std::int64_t least = 1;
  bool by_value = false;
};

/// A field up to the array that is stored of it. The functions in order: `missing`, `split`, the
/// numeric ones, and one that ends it.
struct TableField {
  enum class End : std::uint8_t { number, hash, vocabulary };

  std::string name;
  std::vector<std::size_t> columns;
  bool has_missing = false;
  std::string missing, separator;
  std::int64_t most = 0;  // values of one cell that are kept; 0: a cell is one value
  std::int64_t pad = 0;
  std::vector<Transform> numeric;  // each a number_function
  End end = End::number;
  std::int64_t modulus = 0;
  std::vector<ColumnHash> hashes;  // one a column
  std::size_t vocabulary = 0;      // in TablePlan::vocabularies
  // By column: whether its values count there. Where another field has read the same column in the
  // same way, they are counted already.
  std::vector<bool> counts;
  TensorType stored;               // of one sample
  DType logical = DType::float32;  // that it is given out as
  std::vector<Transform> rest;     // functions of the array
  // All of the above but `rest`, the functions as they are written: the prepared table's key. A new
  // function or option of one is part of it by itself; what else changes the arrays raises
  // `table_format`.
  std::string text;

  /// Needs a number of each value.
  bool parses() const { return end == End::number || !numeric.empty(); }
  std::int64_t values_of_a_cell() const { return most > 0 ? most : 1; }
};

struct TablePlan {
  std::vector<std::string> columns;
  std::vector<TableField> fields;
  std::vector<VocabularyPlan> vocabularies;
};

/// Reports functions that do not fit. `columns`: of the files, in order.
TablePlan plan_table(const DataConfig& config, std::vector<std::string> columns,
                     std::vector<Diagnostic>& errors);

}  // namespace tandem
