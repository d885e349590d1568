// Where predictions go: text to standard output or a file, objects to .jsonl, arrays to .npy or
// .npz.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/graph/host_tensor.h"
#include "engine/training/predicted_values.h"

namespace tandem::api {

/// What stands beside the numbers.
struct PredictionLook {
  bool header = false;           // text begins with the columns' names
  bool class_names = false;      // words of classes are asked for
  std::vector<std::string> ids;  // columns in front
};

/// Values that have no entry for each row, as a micro-batch has made them.
struct PredictedBatch {
  std::int64_t number = 0;         // from 0
  std::vector<std::int64_t> rows;  // of the input that it was made of, from 0
  std::vector<HostTensor> values;  // float32, float64 or int64, in any shape
};

class PredictionFile {
 public:
  virtual ~PredictionFile() = default;

  /// Before `start`: names of columns of texts in front of each row.
  virtual void name_ids(std::vector<std::string>) {}
  /// Before the rows that they belong to: a text a name, row by row.
  virtual void add_ids(std::vector<std::vector<std::string>>) {}
  /// Before all else; text has the arrays' words. Throws Error{usage} where the format does not
  /// hold so many arrays.
  virtual void start(const std::vector<PredictedArray>& arrays) = 0;
  /// `count` rows from index `first` of axis 0 on: a tensor for each array.
  virtual void add(const std::vector<HostTensor>& values, std::int64_t first,
                   std::int64_t count) = 0;
  /// In place of `start` and `add`, where the format has batches: names of values, then these.
  virtual void start_batches(const std::vector<std::string>& names);
  virtual void add_batch(const PredictedBatch& batch);
  /// Rows without a prediction: nan, or -1 in whole numbers.
  virtual void add_missing(std::int64_t rows) = 0;
  /// A file appears under its name now; without this call nothing is there.
  virtual void finish() = 0;

  /// "-", .tsv, .csv, .jsonl, .npy or .npz by the ending. Throws Error{usage} for other endings,
  /// for a look that the format does not have, for folders and for files that must not be written
  /// to.
  static std::unique_ptr<PredictionFile> open(const std::string& to, const PredictionLook& look);
  /// Throws Error{usage} where the format of `to` has no batches, which `value` needs.
  static void check_batches(const std::string& to, const std::string& value);
  /// What `open` finds wrong with the name alone.
  static void check(const std::string& to, const PredictionLook& look);
};

}  // namespace tandem::api
