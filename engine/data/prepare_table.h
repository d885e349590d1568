// Text tables as arrays on disk: made once, mapped whenever they are needed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/data/array_set.h"
#include "engine/data/data_source.h"
#include "engine/data/row_encoder.h"

namespace tandem {

struct PreparedFile {
  std::string source;
  std::int64_t rows = 0, bad = 0;  // taken, left out
  std::string first_bad;           // "file:line:column: …"
};
struct PreparedSplit {
  std::vector<PreparedFile> files;
  std::vector<std::vector<ColumnStatistics>> fields;  // by field and column

  std::int64_t rows() const;
  std::int64_t bad() const;
};
struct PreparedTable {
  std::string folder;
  TablePlan plan;
  PreparedSplit train, eval;
  std::vector<SavedVocabulary> vocabularies;
  std::vector<std::string> warnings;  // about held-out words that training lacks
  bool built = false;                 // by this call; else it was up to date
};

/// Finds the table in the folder `config.cache`, or makes it there: DATA/FILES/, where DATA is a
/// name for files, columns and functions, FILES one for the files' sizes and times of change. It is
/// written under another name and renamed; processes that want the same table wait for each other.
/// Throws Error{data} with file:line:column of bad rows, Error{usage} for functions that do not
/// fit.
PreparedTable prepare_table(const DataConfig& config, const OpenOptions& options);

/// What an id at an element of a field's samples means: "the text \"Rome\" of the column \"city\"",
/// or only its column; "" for a field that is none of the table's.
std::string origin_in_table(const PreparedTable& table, const std::string& field,
                            std::int64_t element, std::int64_t id);

/// The split's fields as arrays, mapped.
std::shared_ptr<const ArraySet> open_prepared(const PreparedTable& table, bool eval);
/// Fields over those arrays, with the functions that are still to be applied.
std::vector<FieldConfig> array_fields(const PreparedTable& table,
                                      const std::vector<FieldConfig>& fields);

}  // namespace tandem
