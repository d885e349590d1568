// A metric that is more than one number: of classes, of values of a data field, or of pairs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tandem {

struct MetricTable {
  std::string metric;              // its name
  std::vector<std::string> names;  // of classes, or of values of a field: numbers, or words
  std::vector<double> numbers;     // one a name, NaN where there is none; of a matrix below
  bool is_matrix = false;          // one for each pair of names, row by row
  bool operator==(const MetricTable&) const = default;
};

/// {"name": number, …}, or the rows of a matrix: [[…], …], of classes that have words
/// {"classes": ["word", …], "rows": [[…], …]}. A number that is not finite is a string.
std::string table_json(const MetricTable& table);
/// Lines for people. Of more than `most` names, the first ones; of so large a matrix, its size.
std::string table_text(const MetricTable& table, std::size_t most = 20);

}  // namespace tandem
