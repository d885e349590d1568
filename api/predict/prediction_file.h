// Writes predictions: text to standard output or a file, objects to .jsonl, arrays to .npy or .npz.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/graph/host_tensor.h"
#include "engine/metrics/predicted_values.h"

namespace tandem::api {

/// What is written besides the numbers.
struct PredictionLook {
  bool header = false;           // text begins with the columns' names
  bool class_names = false;      // write names of classes
  std::vector<std::string> ids;  // columns in front of each row
};

/// Values of a micro-batch that have no entry for each row.
struct PredictedBatch {
  std::int64_t number = 0;         // counted from 0
  std::vector<std::int64_t> rows;  // rows of the input that it was computed from, counted from 0
  std::vector<HostTensor> values;  // float32, float64 or int64, in any shape
};

class PredictionFile {
 public:
  virtual ~PredictionFile() = default;

  /// Before `start`: names of the text columns in front of each row.
  virtual void name_ids(std::vector<std::string>) {}
  /// Before the rows that they belong to: one text per name, row by row.
  virtual void add_ids(std::vector<std::vector<std::string>>) {}
  /// Before everything else; text needs the arrays' words. Throws Error{usage} where the format
  /// cannot hold that many arrays.
  virtual void start(const std::vector<PredictedArray>& arrays) = 0;
  /// Adds `count` rows from index `first` of axis 0 on: one tensor per array.
  virtual void add(const std::vector<HostTensor>& values, std::int64_t first,
                   std::int64_t count) = 0;
  /// Instead of `start` and `add`, where the format has batches: first the names of values, then
  /// the batches.
  virtual void start_batches(const std::vector<std::string>& names);
  virtual void add_batch(const PredictedBatch& batch);
  /// Rows without a prediction: NaN, or -1 in whole numbers.
  virtual void add_missing(std::int64_t rows) = 0;
  /// The file appears under its name only here; without this call there is none.
  virtual void finish() = 0;

  /// "-", .tsv, .csv, .jsonl, .npy or .npz, chosen by the ending. Throws Error{usage} for other
  /// endings, for a look that the format does not support, for folders and for files that must not
  /// be written to.
  static std::unique_ptr<PredictionFile> open(const std::string& to, const PredictionLook& look);
  /// Throws Error{usage} where the format of `to` has no batches, which `value` needs.
  static void check_batches(const std::string& to, const std::string& value);
  /// Checks the name as `open` does, without opening a file.
  static void check(const std::string& to, const PredictionLook& look);
};

}  // namespace tandem::api
