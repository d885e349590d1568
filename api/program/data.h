// Commands about the data of a train.toml: preparing, checking and timing it. Standard types only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tandem/report.h"
#include "tandem/stop.h"

namespace tandem::api {

struct DataOptions {
  std::vector<std::string> overrides;                  // keys of train.toml
  std::function<void(const std::string&)> on_message;  // progress, for people
  /// For `data_prepare`: on request it ends with Error{runtime} "interrupted", and removes what was
  /// written of a table.
  StopToken stop;
};
/// Turns the text tables of a train.toml into arrays in `data.cache`, where they are not there yet.
/// The report says "up to date", or what was made. Other kinds of data need no preparing.
Report data_prepare(const std::string& config_path, const DataOptions& options = {});

struct DataReport {
  Report report;
  bool bad = false;  // rows, pictures, labels or ids that training would refuse
};
/// Reads all data without writing: samples, per field the least and greatest values and the missing
/// ones, and the first bad rows of each file. Compares labels and ids with the model, where that
/// can be read.
DataReport data_check(const std::string& config_path, const DataOptions& options = {});

struct DataBenchOptions {
  DataOptions data;
  double seconds = 2;  // for each number of threads
  int threads = 0;     // the most; 0: all cores
};
/// What the loader of the training data gives without a model, by its number of threads (1, 2, 4,
/// …): samples and bytes a second, what its threads spend reading, decoding, transforming and
/// copying, and which of these bounds it. Reads all fields of the configuration.
Report data_bench(const std::string& config_path, const DataBenchOptions& options = {});

}  // namespace tandem::api
