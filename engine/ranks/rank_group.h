// A process as one rank of a run: its rendezvous and its operations with the other ranks.
#pragma once

#include <chrono>
#include <memory>

#include "engine/ranks/communicator.h"
#include "engine/ranks/message_operations.h"
#include "engine/ranks/rank_messages.h"
#include "engine/ranks/rendezvous.h"

namespace tandem {

struct RankGroupOptions {
  int local_rank = 0, local_ranks = 1;
  int core_sharers = 1;
  std::chrono::milliseconds operation_limit{3600000};  // for one operation of a communicator
  MessageSizes sizes;
};

class RankGroup {
 public:
  /// A process that trains without others.
  RankGroup() : RankGroup(one_rank(), nullptr, {}) {}
  RankGroup(std::shared_ptr<Rendezvous> rendezvous, std::shared_ptr<RankMessages> messages,
            const RankGroupOptions& options);
  virtual ~RankGroup() = default;
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  const std::shared_ptr<Rendezvous>& rendezvous() const { return rendezvous_; }
  int rank() const { return rendezvous_->rank(); }
  int ranks() const { return rendezvous_->ranks(); }
  int local_rank() const { return options_.local_rank; }    // among those on this machine
  int local_ranks() const { return options_.local_ranks; }  // how many of them
  /// How many of them may use this rank's cores, itself among them: 1 where the launcher has bound
  /// each to cores of its own.
  int core_sharers() const { return options_.core_sharers; }

  /// Operations on memory that the host reaches: the cpu's and that of emulated devices. Every
  /// device that joins gets one of its own; all ranks make theirs in the same order. Null without
  /// other ranks.
  std::shared_ptr<Communicator> make_communicator();

 private:
  const std::shared_ptr<Rendezvous> rendezvous_;
  const std::shared_ptr<RankMessages> messages_;
  const RankGroupOptions options_;
  int made_ = 0;
};

}  // namespace tandem
