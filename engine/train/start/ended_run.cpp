#include "engine/train/start/ended_run.h"

#include "engine/train/checkpoints/checkpoint_format.h"
#include "engine/train/checkpoints/run_directory.h"

namespace tandem {

std::optional<EndedRun> ended_run(const std::string& run_dir) {
  if (!RunDirectory::has_ended(run_dir)) return std::nullopt;
  const std::string folder = run_dir + "/checkpoints";
  const std::vector<std::string> names = list_checkpoints(folder);
  if (names.empty()) return std::nullopt;
  try {
    const TrainingPosition position = read_position(folder + "/" + names.back() + "/state.json");
    return EndedRun{{static_cast<std::int64_t>(position.step), position.data},
                    position.batches.back().samples};
  } catch (const Error&) {  // the code that reads the whole checkpoint reports what is wrong
    return std::nullopt;
  }
}

bool has_reached_length(const RunConfig& config, const EndedRun& run) {
  const RunLength length = run_length(config, run.samples, run.place);
  return length.is_limited() && run.place.step >= length.steps;
}

}  // namespace tandem
