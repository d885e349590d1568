// A fingerprint of a run's data that tells it from other data, found without reading all of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/training/data/data_source.h"

namespace tandem {

struct FileFingerprint {
  std::string array;  // that the configuration names it for; "" where it names its arrays itself
  std::string name;   // without the folder
  std::uint64_t bytes = 0;
  std::string ends;  // sha256 of the first and the last 64 KiB; "" of pipes, which are read once;
                     // for a folder that of its pictures' names and sizes
  bool operator==(const FileFingerprint&) const = default;
};

struct SplitFingerprint {
  std::vector<FileFingerprint> files;  // in order
  std::int64_t samples = 0;            // 0: none, or not known
};

struct DataFingerprint {
  SplitFingerprint train, eval;
  std::map<std::string, std::string> fields;  // types by field: {"image": "float32 [1, 8, 8]"}
};

/// The files of a split; its samples are not known. Throws Error{runtime} where one cannot be read.
SplitFingerprint fingerprint_of(const SplitConfig& split);
DataFingerprint fingerprint_of(const DataConfig& config, const DataSets& data);

/// A difference between two records of the same thing.
struct Difference {
  std::string where;   // "data.train: train.npz", the path of an operator
  std::string what;    // "bytes", "attribute dilations"
  std::string before;  // "" where there was none
  std::string now;     // "" where there is none
};
/// "/pool1/MaxPool: operator: MaxPool, now AveragePool"
std::string to_string(const Difference& difference);

/// The first difference, if any. `where`: what the split is called. Samples are compared where both
/// are known, contents where both are.
std::optional<Difference> first_difference(const std::string& where, const SplitFingerprint& before,
                                           const SplitFingerprint& now);
std::optional<Difference> first_difference(const DataFingerprint& before,
                                           const DataFingerprint& now);

}  // namespace tandem
