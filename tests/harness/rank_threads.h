// Runs ranks as threads of one process: each has a rendezvous with the others and communicators
// over host memory. The operations are those of several processes; only their messages are copies
// here.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/ranks/message_operations.h"
#include "engine/ranks/rank_group.h"

namespace tandem::testing {

struct RankThreadsOptions {
  int ranks = 2;
  std::chrono::milliseconds exchange_limit{60000};  // limit for all ranks to reach an exchange
  std::chrono::milliseconds operation_limit{60000};
  MessageSizes sizes;
};

/// What connects the ranks. Groups may outlive it.
class RankThreads {
 public:
  explicit RankThreads(const RankThreadsOptions& options);
  explicit RankThreads(int ranks) : RankThreads(RankThreadsOptions{.ranks = ranks}) {}
  ~RankThreads();

  /// The group of rank `rank`; call it once for each.
  std::shared_ptr<RankGroup> group(int rank);

  /// Runs f for each rank in a thread of its own, at the same time, and returns the message of what
  /// each has thrown, in the order of ranks; "" for those that have not. A rank that throws makes
  /// the others fail.
  std::vector<std::string> run(const std::function<void(RankGroup&)>& f);

  class Hub;

 private:
  const RankThreadsOptions options_;
  const std::shared_ptr<Hub> hub_;
};

/// `RankThreads::run` with new ranks; throws Error{runtime} with the text of the first rank that
/// has thrown.
void on_rank_threads(int ranks, const std::function<void(RankGroup&)>& f);

}  // namespace tandem::testing
