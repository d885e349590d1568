// A fingerprint of a run's data that tells it from other data, found without reading all of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/train/checkpoints/recorded_parts.h"

namespace tandem {

struct DataFingerprint {
  std::vector<RecordedPart> train, eval;      // files in order, then the number of samples
  std::map<std::string, std::string> fields;  // types by field: {"image": "float32 [1, 8, 8]"}
};

/// The files of a split by name, size and hash of their ends, and its number of samples, 0 where
/// that is not known. Throws Error{runtime} where a file cannot be read.
std::vector<RecordedPart> fingerprint_of(const SplitConfig& split, std::int64_t samples = 0);
DataFingerprint fingerprint_of(const DataConfig& config, const DataSets& data);

std::optional<Difference> first_difference(const DataFingerprint& before,
                                           const DataFingerprint& now);

}  // namespace tandem
