// The results of `tandem data check`, by kind of data.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/table_rows.h"
#include "engine/config/run_config.h"
#include "engine/data/data_source.h"
#include "engine/data/tokens/token_counts.h"
#include "engine/graph/error.h"

namespace tandem::api {

/// Statistics of what a field reads from one column.
struct CheckedColumn {
  std::string name;
  const char* limit = "";  // what `cut` counts: "values beyond `max` of split"
  std::int64_t values = 0, missing = 0, cut = 0, distinct = -1, bad_numbers = 0;
  /// Values that the training data's vocabulary lacks; -1: there is no vocabulary.
  std::int64_t unknown = -1;
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
};
struct CheckedField {
  std::string name;
  TensorType sample;
  std::vector<CheckedColumn> columns;
};
struct CheckedSplit {
  std::string name;
  std::int64_t samples = 0, bad = 0;
  std::vector<CheckedField> fields;
  std::optional<TokenCounts> tokens = {};  // counted in its files; unset: no text is a sample
};
/// Everything that the check found.
struct CheckedData {
  std::vector<CheckedSplit> splits;
  std::vector<Diagnostic> problems;
  bool broken = false;  // a whole file is bad, or the model does not accept some ids or labels
  nlohmann::ordered_json vocabularies = nlohmann::ordered_json::array();
  std::vector<std::string> notes;  // what was found out, what was not checked, and why
  std::vector<std::string> warnings;
};

/// Reads all rows of text tables, and writes nothing.
CheckedData check_table(const RunConfig& config, const OpenOptions& options);
/// Reads all samples of data of another kind; samples that cannot be read are skipped and reported.
CheckedData check_arrays(const RunConfig& config, const OpenOptions& options);

/// Opens the splits' fields, with integers as the options say.
using CheckedSources =
    std::function<std::vector<std::shared_ptr<const tandem::DataSource>>(const OpenOptions&)>;
/// Adds labels that are no classes of the model and ids that are no rows of its tables; or a note
/// where the model cannot be read. `rows`: numbers of rows by vocabulary; empty: there are no
/// vocabularies.
void compare_with_model(const RunConfig& config, const VocabularyRows& rows,
                        const CheckedSources& sources, CheckedData& to);

}  // namespace tandem::api
