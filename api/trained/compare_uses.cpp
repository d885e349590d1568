#include "api/trained/compare_uses.h"

#include "engine/train/group/start_checks.h"

namespace tandem::api {

void compare_uses(const RankGroup& group, const TrainedModel& trained, std::int64_t samples) {
  const TrainedRun& run = trained.run();
  refuse_differences(
      *group.rendezvous(),
      {{"the version of tandem", version(), "start the same program on all ranks"},
       {"the model", run.path, "name one checkpoint: --checkpoint STEP"},
       {"the configuration", to_toml(run.config), "give all ranks the same keys"},
       {"the number of samples", std::to_string(samples), "give all ranks the same files"}});
}

}  // namespace tandem::api
