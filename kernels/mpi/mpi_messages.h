// Messages between ranks over MPI.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "engine/ranks/rank_messages.h"
#include "kernels/mpi/mpi_functions.h"

namespace tandem {

struct MpiPlace {
  int rank = 0, ranks = 1, local_rank = 0, local_ranks = 1;
};

/// Once one object has given up, none in this process calls MPI any more: requests that are under
/// way would touch freed memory.
class MpiMessages final : public RankMessages {
 public:
  /// The functions are started; they outlive it.
  MpiMessages(const TandemMpi& functions, const MpiPlace& place)
      : functions_(functions), place_(place) {}

  int rank() const override { return place_.rank; }
  int ranks() const override { return place_.ranks; }
  Request send(int to, int channel, const void* bytes, std::size_t count) override;
  Request receive(int from, int channel, void* bytes, std::size_t count) override;
  bool is_done(Request& request) override;
  void pause(std::chrono::microseconds time) override;
  void abandon() override;

 private:
  void check(int error, const char* what) const;

  const TandemMpi& functions_;
  const MpiPlace place_;
  std::mutex mutex_;  // MPI is called by one thread at a time
  bool is_abandoned_ = false;
};

}  // namespace tandem
