// Where a run that is to be resumed has ended: whether it has reached a length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/config/run_config.h"
#include "engine/train/loop/run_length.h"

namespace tandem {

struct EndedRun {
  RunPlace place;            // where its newest checkpoint was saved
  std::int64_t samples = 0;  // samples of an epoch
};

/// Reads where the run of this directory ended. Nothing where it was interrupted (there is no
/// summary.json), or where its newest checkpoint does not say how many samples an epoch has.
std::optional<EndedRun> ended_run(const std::string& run_dir);

/// Whether nothing would be left to do by `steps` and `epochs` of a configuration; max_time starts
/// again in each process.
bool has_reached_length(const RunConfig& config, const EndedRun& run);

}  // namespace tandem
