// What a run directory records of placement, and how a run is found again.
#pragma once

#include <string>

#include "engine/graph/graph.h"
#include "engine/lower/placement.h"
#include "engine/training/checkpoint.h"
#include "engine/training/config/run_config.h"

namespace tandem::api {

/// The policy that says what `place_everything` does: a valid policy.toml.
std::string default_policy();
std::string placement_json(const Placement& placement, const Graph& graph);

/// A checkpoint of a run directory ("", "latest", "best", "1000", "step-00001000"), or of a
/// checkpoint directory itself. Throws Error{usage} listing what there is.
struct FoundCheckpoint {
  std::string run_dir;  // holds train.resolved.toml
  std::string path;
  CheckpointContent content;
};
FoundCheckpoint find_checkpoint(const std::string& run_or_checkpoint, const std::string& which);

}  // namespace tandem::api
