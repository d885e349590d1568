// NCCL without GPUs: ranks are threads of one process, each with its own runtime. Operations are
// matched between ranks and computed in a simple way; broken rules of NCCL are collected.
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

/// Only one can exist: NCCL's functions have no argument that could name it.
class FakeNccl {
 public:
  FakeNccl();
  ~FakeNccl();
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  const cuda::Nccl* table() const { return &table_; }
  /// Communicators that this thread starts belong to the GPUs of `runtime`.
  void on_this_thread(std::shared_ptr<FakeRuntime> runtime);

  // Queries for tests.
  std::vector<std::string> problems() const;
  /// Communicators that were not destroyed or aborted.
  int live_communicators() const;
  int aborted() const;

  // Settings for tests.
  /// The `nth` call of that function from here (1: the next), by any rank, fails at once.
  void fail(std::string function, int nth, ncclResult_t result, std::string text);
  /// The communicators of that rank report the error when asked.
  void fail_later(int rank, ncclResult_t result, std::string text);
  /// A started call (of a start or of an operation) is reported as in progress this many times;
  /// after the last its work is put on the stream.
  void set_polls(int polls);
  /// Operations or starts do not end until they are aborted.
  void hang_operations(bool hang);
  void hang_starts(bool hang);
  /// The first byte of every result is wrong.
  void spoil_results(bool spoil);
  void set_version(int version);  // for this thread; 22809 is 2.28.9

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
  /// Unlocks the mutex for the time of the call.
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

/// Only NCCL, with this table; null: it cannot be used.
inline std::shared_ptr<cuda::Libraries> nccl_alone(const cuda::Nccl* table) {
  LibraryTables tables{.nccl = table};
  if (table == nullptr)
    tables.report = {{"NCCL", "2.28", "", "", "libnccl.so.2 is nowhere", "pip install nccl"}};
  return std::make_shared<GivenLibraries>(tables);
}

}  // namespace tandem::testing
