// Checks that ranks which use a trained model together agree.
#pragma once

#include "api/trained/trained_run.h"
#include "engine/ranks/rank_group.h"

namespace tandem::api {

/// Throws where a rank uses another model, other settings or other samples than rank 0. `samples`:
/// how many there are; negative where that is not known yet.
void compare_uses(const RankGroup& group, const TrainedModel& trained, std::int64_t samples);

}  // namespace tandem::api
