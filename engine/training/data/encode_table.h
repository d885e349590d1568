// One file of a text table into arrays on disk, or only into counts.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "engine/training/data/table_plan.h"

namespace tandem {

/// Of the values that a field takes from one column.
struct ColumnStatistics {
  std::int64_t values = 0, empty = 0;
  std::int64_t cut = 0;      // values beyond the most that `split` keeps
  std::int64_t unknown = 0;  // that the vocabulary does not have
  double least = std::numeric_limits<double>::infinity();
  double greatest = -std::numeric_limits<double>::infinity();

  void take(double value) {
    least = value < least ? value : least;
    greatest = value > greatest ? value : greatest;
  }
  void add(const ColumnStatistics& other);
};

struct EncodedFile {
  std::int64_t rows = 0, bad = 0;
  std::vector<Diagnostic> problems;                   // the first bad rows
  std::vector<std::vector<ColumnStatistics>> fields;  // by field and column
  std::vector<ValueCounts> values;                    // by vocabulary
};

struct EncodeOptions {
  /// Arrays go to PREFIX.FIELD, FIELD being the number in the plan, and the line of each row as
  /// uint32 to PREFIX.lines. "": nothing is written. Fields with a vocabulary hold numbers of
  /// `EncodedFile::values`, and -1 where `split` fills up.
  std::string prefix;
  std::size_t problems = 5;           // that are kept
  bool stops = true;                  // once there are so many
  std::atomic<bool>* stop = nullptr;  // asked now and then: ends early
  /// Hears of the bytes of the file that were read since it last did.
  std::function<void(std::uint64_t)> on_read;
};

/// Throws Error{data} where the file is broken as a whole (gzip, header).
EncodedFile encode_table(const DataConfig& config, const TablePlan& plan, const std::string& path,
                         const EncodeOptions& options);

/// Names of the columns: those of the configuration, or of the file's first row.
std::vector<std::string> table_columns(const DataConfig& config, const std::string& path);

}  // namespace tandem
