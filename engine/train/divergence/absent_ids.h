// Ids above the rows of their table, which out_of_range = "zero" lets pass: how many there are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/data/data_source.h"
#include "engine/graph/graph.h"

namespace tandem {

/// Counts them in fields that have that key, column by column. Negative ids do not count: they mean
/// "no id", as after the end of a short list.
class AbsentIds {
 public:
  /// `forward`: the graph that looks ids up, for any batch size; outlives this object.
  AbsentIds(const RunConfig& config, const Graph& forward);

  /// Reads the fields whole. `source`: with the ids as the data has them, before zero_out_of_range.
  void add(const DataSource& source);
  /// Like `add`, for a source that has no rows, but ranges of columns: it gives no counts.
  void add_ranges(const DataSource& source);
  /// A sentence for each column of which more than 3 of 100 ids name no row, or whose range exceeds
  /// the rows.
  std::vector<std::string> warnings() const;

 private:
  struct Column {
    std::string name;
    std::int64_t values = 0, absent = 0;
    std::vector<std::int64_t> examples;  // the first different ones
  };
  struct Field {
    std::string name;
    std::int64_t rows = 0;  // rows of its tables
    std::vector<std::string> tables;
    double greatest = 0;  // the greatest id
    std::vector<Column> columns;
    std::vector<std::string> ranges;  // that exceed the rows
  };

  std::string what_happens(const Field& field) const;

  const Graph& forward_;
  std::vector<Field> fields_;
};

}  // namespace tandem
