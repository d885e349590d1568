// NCCL without GPUs: ranks are threads of one process, each with a runtime of its own. Operations
// are matched and computed plainly; what breaks a rule of NCCL is collected.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/cuda/libraries/nccl.h"
#include "tests/cuda/support/fake_runtime.h"
#include "tests/cuda/support/given_libraries.h"

namespace tandem::testing {

/// One at a time: NCCL's functions have no place for whose they are.
class FakeNccl {
 public:
  FakeNccl();
  ~FakeNccl();
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  const cuda::Nccl* table() const { return &table_; }
  /// Communicators that this thread starts belong to that runtime's GPUs.
  void on_this_thread(std::shared_ptr<FakeRuntime> runtime);

  // What tests ask.
  std::vector<std::string> problems() const;
  /// Communicators that nobody has destroyed or aborted.
  int live_communicators() const;
  int aborted() const;

  // What tests order.
  /// The `nth` call of that function from now (1: the next), of whatever rank, fails at once.
  void fail(std::string function, int nth, ncclResult_t result, std::string text);
  /// The communicators of that rank report the error when they are asked.
  void fail_later(int rank, ncclResult_t result, std::string text);
  /// So many times a started call is said to be in progress, in starts and in operations: their
  /// work stands on the stream after the last.
  void set_polls(int polls);
  /// Operations never end, and starts neither, before they are aborted.
  void hang_operations(bool hang);
  void hang_starts(bool hang);
  /// Every result differs in its first byte.
  void spoil_results(bool spoil);
  void set_version(int version);  // of this thread; 22809 is 2.28.9

 private:
  friend struct FakeNcclCalls;
  struct World;
  struct Rank;
  struct Operation;
  struct Request;

  ncclResult_t enter(const char* function);
  ncclResult_t broken(ncclResult_t result, const std::string& text);
  Rank* find(ncclComm_t communicator, const char* function);
  ncclResult_t add(Request request);
  ncclResult_t place(Rank& rank, std::vector<Request> requests);
  /// Lets go of the mutex meanwhile.
  ncclResult_t enqueue(Rank& rank, std::vector<Request> requests);
  bool take_part(Rank& rank, const std::vector<Request>& requests, std::uint64_t& token);
  ncclResult_t state_of(Rank& rank);

  static FakeNccl* current_;
  mutable std::mutex mutex_;
  cuda::Nccl table_;
  std::map<std::string, std::shared_ptr<World>> worlds_;
  std::map<ncclComm_t, std::shared_ptr<Rank>> ranks_;
  std::vector<std::string> problems_;
  struct Failure {
    std::string function;
    int calls_left;
    ncclResult_t result;
    std::string text;
  };
  std::vector<Failure> failures_;
  std::string last_error_;
  int ids_ = 0, polls_ = 0, aborted_ = 0;
  bool hangs_ = false, starts_hang_ = false, spoils_ = false;
};

/// NCCL alone; null: it cannot be used.
inline std::shared_ptr<cuda::Libraries> nccl_alone(const cuda::Nccl* table) {
  LibraryTables tables{.nccl = table};
  if (table == nullptr)
    tables.report = {{"NCCL", "2.28", "", "", "libnccl.so.2 is nowhere", "pip install nccl"}};
  return std::make_shared<GivenLibraries>(tables);
}

}  // namespace tandem::testing
