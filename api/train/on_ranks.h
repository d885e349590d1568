// Runs work in one process, or in each of several that a launcher has started together.
#pragma once

#include <memory>

#include "engine/train/group/end_on_ranks.h"
#include "kernels/mpi/join_ranks.h"

namespace tandem::api {

/// Returns what `work` returns, with this rank's number; `work` gets this rank's group. An error of
/// one rank ends all ranks.
template <class Work>
auto on_ranks(Work&& work) {
  const std::shared_ptr<RankGroup> group = join_ranks();
  try {
    auto report = work(group);
    report.rank = group->rank();
    return report;
  } catch (const ErrorElsewhere&) {
    throw;
  } catch (const Error& error) {
    end_on_ranks(*group->rendezvous(), error);
  } catch (const std::exception& error) {
    group->rendezvous()->fail(error.what());
    throw;
  }
}

/// Options without callbacks for people on every rank but 0.
template <class Options>
Options quiet_but_on_rank_0(Options options, const std::shared_ptr<RankGroup>& group) {
  if (group->rank() > 0) options.on_message = {}, options.on_progress = {};
  return options;
}

}  // namespace tandem::api
