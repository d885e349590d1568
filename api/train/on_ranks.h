// Runs work in one process, or in each of several that a launcher has started together.
#pragma once

#include <memory>

#include "engine/train/group/end_on_ranks.h"
#include "kernels/mpi/join_ranks.h"

namespace tandem::api {

/// Returns what `work` returns, with this rank's number; `work` gets this rank's group, null for
/// one process. An error of one rank ends all ranks.
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

/// Options without callbacks for people on every rank but 0.
template <class Options>
Options quiet_but_on_rank_0(Options options, const std::shared_ptr<RankGroup>& group) {
  if (group && group->rank() > 0) options.on_message = {}, options.on_progress = {};
  return options;
}

}  // namespace tandem::api
