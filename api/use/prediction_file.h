// Where predictions go: text to standard output or a file, arrays to .npy or .npz.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/graph/host_tensor.h"
#include "engine/training/predicted_values.h"

namespace tandem::api {

class PredictionFile {
 public:
  virtual ~PredictionFile() = default;

  /// Before `start`: text has these names in place of the numbers of arrays called "class".
  virtual void name_classes(std::vector<std::string>) {}
  /// Before all else. Throws Error{usage} where the format does not hold so many arrays.
  virtual void start(const std::vector<PredictedArray>& arrays) = 0;
  /// `count` rows from index `first` of axis 0 on: a tensor for each array.
  virtual void add(const std::vector<HostTensor>& values, std::int64_t first,
                   std::int64_t count) = 0;
  /// Rows without a prediction: nan, or -1 in whole numbers.
  virtual void add_missing(std::int64_t rows) = 0;
  /// A file appears under its name now; without this call nothing is there.
  virtual void finish() = 0;

  /// "-", .tsv, .csv, .npy or .npz by the ending; `header`: text begins with the columns' names.
  /// Throws Error{usage} for other endings, for folders and for files that must not be written to.
  static std::unique_ptr<PredictionFile> open(const std::string& to, bool header);
  /// What `open` finds wrong with the name alone.
  static void check(const std::string& to, bool header, bool class_names = false);
};

}  // namespace tandem::api
