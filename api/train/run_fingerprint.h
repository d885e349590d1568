// Identifies a run's model and data, and compares them with a checkpoint's.
#pragma once

#include <string>
#include <vector>

#include "engine/data/data_source.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/checkpoints/fingerprint.h"
#include "importer/file/onnx_file.h"

namespace tandem::api {

/// The fingerprint of a run that is about to start, which its checkpoints record.
FingerprintPtr run_fingerprint(const RunConfig& config, const OnnxFile& file, const DataSets& data);

/// A checkpoint that is in use.
struct UsedCheckpoint {
  const TrainingPosition& position;
  std::string path;
  bool accepts_changes = false;
};

/// Throws Error{usage} where the model file differs from the one that the checkpoint was trained
/// with, unless that is accepted. Returns a line for people: what was accepted.
std::vector<std::string> compare_model(const UsedCheckpoint& used, const RunConfig& config,
                                       const OnnxFile& file);

/// A line for people where the held-out data is not that of the training; else none. `samples`:
/// number of held-out samples.
std::vector<std::string> compare_held_out(const UsedCheckpoint& used, const DataConfig& data,
                                          std::int64_t samples);

}  // namespace tandem::api
