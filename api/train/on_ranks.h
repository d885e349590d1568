// What one process does, or several that a launcher has started together.
#pragma once

#include <memory>

#include "engine/training/ranks/end_on_ranks.h"
#include "kernels/mpi/join_ranks.h"

namespace tandem::api {

/// What `work` returns, which is given this rank's group, null for one process; with its rank. An
/// error of one rank ends all.
template <class Work>
auto on_ranks(Work&& work) {
  const std::shared_ptr<RankGroup> group = join_ranks();
  Rendezvous* const ranks = group ? group->rendezvous().get() : nullptr;
  try {
    auto report = work(group);
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

/// Of a rank that tells people nothing.
template <class Options>
Options quiet_but_on_rank_0(Options options, const std::shared_ptr<RankGroup>& group) {
  if (group && group->rank() > 0) options.on_message = {}, options.on_progress = {};
  return options;
}

}  // namespace tandem::api
