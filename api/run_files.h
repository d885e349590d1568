// Finds a run directory, its checkpoint and its recorded placement again.
#pragma once

#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/train/checkpoints/checkpoint.h"

namespace tandem::api {

/// A checkpoint of a run directory ("", "latest", "best", "1000", "step-00001000"), or of a
/// checkpoint directory itself. Throws Error{usage} listing what there is, Error{data} where none
/// is whole.
struct FoundCheckpoint {
  std::string run_dir;  // holds train.resolved.toml
  std::string path;
  CheckpointContent content;
  std::vector<std::string> warnings;  // newer checkpoints that are broken
};
FoundCheckpoint find_checkpoint(const std::string& run_or_checkpoint, const std::string& which);

/// Arguments --place and --device of a training, as placement.json of its directory has them; none
/// where that is missing. Throws Error{usage} where it is damaged.
struct RecordedPlacing {
  std::vector<std::string> place, devices;
};
RecordedPlacing recorded_placing(const std::string& run_dir);

}  // namespace tandem::api
