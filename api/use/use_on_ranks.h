// A trained model on one process, or on several that a launcher has started together.
#pragma once

#include <memory>
#include <utility>

#include "api/use/trained_run.h"
#include "engine/training/ranks/end_on_ranks.h"
#include "kernels/mpi/join_ranks.h"

namespace tandem::api {

/// What `use` returns, which is given this rank's group, null for one process. `report` comes from
/// it with its rank. An error of one rank ends all.
template <class Use>
auto use_on_ranks(Use&& use) {
  const std::shared_ptr<RankGroup> group = join_ranks();
  Rendezvous* const ranks = group ? group->rendezvous().get() : nullptr;
  try {
    auto report = use(group);
    if (group) report.rank = group->rank();
    return report;
  } catch (const ErrorElsewhere&) {
    throw;
  } catch (const Error& error) {
    end_on_ranks(ranks, error);
  } catch (const std::exception& error) {
    if (ranks != nullptr) ranks->fail(error.what());
    throw;
  }
}

/// Throws where ranks use other models, settings or samples than rank 0. `samples`: how many there
/// are; negative where that is not known yet.
void compare_uses(const RankGroup& group, const TrainedModel& trained, std::int64_t samples);

/// Of a rank that tells people nothing.
template <class Options>
Options quiet_but_on_rank_0(Options options, const std::shared_ptr<RankGroup>& group) {
  if (group && group->rank() > 0) options.on_message = {}, options.on_progress = {};
  return options;
}

}  // namespace tandem::api
