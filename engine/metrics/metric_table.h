// A metric that is more than one number: of classes, of values of a data field, or of pairs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tandem {

struct MetricTable {
  std::string metric;              // its name
  std::vector<std::string> names;  // classes, or values of a field: numbers, or words
  std::vector<double> numbers;     // one a name, NaN where undefined; for a matrix see below
  bool is_matrix = false;          // one for each pair of names, row by row
  bool operator==(const MetricTable&) const = default;
};

/// {"name": number, …}, or the rows of a matrix: [[…], …]; for classes that have words
/// {"classes": ["word", …], "rows": [[…], …]}. A number that is not finite is a string.
std::string table_json(const MetricTable& table);
/// Lines for people: only the first `most` names; only the size of a matrix with more names.
std::string table_text(const MetricTable& table, std::size_t most = 20);

}  // namespace tandem
