// The fake CUDA runtime's streams, events, captures and graphs.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "tests/cuda/support/fake_runtime.h"

namespace tandem::testing {

/// One operation of a stream. Until `keep` it does not own its body and can only be run at once.
struct FakeRuntime::Work {
  enum class Kind : std::uint8_t { copy, fill, launch, function, wait, graph };
  Kind kind = Kind::copy;
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  int byte = 0;
  cuda::Launch launch;
  std::vector<std::max_align_t> body;  // set if the launch is run later
  std::function<void()> function;
  std::string name;                   // the function's name
  std::shared_ptr<FakeStream> other;  // a wait is for its first `number` operations
  std::uint64_t number = 0;
  std::shared_ptr<FakeGraph> graph;
  mutable std::size_t next = 0;  // index of the graph's next node
  /// WorkInTurn's token for the function, or for the graph's node, that is running.
  mutable std::uint64_t token = 0;

  /// Copies the body, so that the work can be run later.
  void keep();
};

struct FakeRuntime::FakeStream {
  int number = 0, gpu = 0;
  int lane = -1;  // its lane in the order checker
  std::deque<Work> pending;
  std::uint64_t added = 0, done = 0;
  std::shared_ptr<Capture> capture;
  std::size_t branch = 0;  // index in `capture`
  std::string name() const { return "stream " + std::to_string(number); }
};

struct FakeRuntime::FakeEvent {
  int number = 0, gpu = 0;
  int id = -1;              // its number in the order checker
  std::uint64_t count = 0;  // how often it was recorded
  std::shared_ptr<FakeStream> stream;
  std::uint64_t position = 0;  // how many operations of the stream the last record follows
  bool is_timer = false;
  std::chrono::steady_clock::time_point time;  // when a timer was last recorded
  std::shared_ptr<Capture> capture;
  VectorClock clock;  // in the capture
  std::string name() const { return "event " + std::to_string(number); }
};

struct FakeRuntime::Capture {
  struct Branch {
    std::shared_ptr<FakeStream> stream;
    VectorClock clock;
  };
  std::vector<Branch> branches;
  std::vector<Work> nodes;
  std::vector<ByteAccess> accesses;  // accesses of copies and fills
  std::thread::id thread;
  bool ended = false;
  std::string broken;

  void join(std::shared_ptr<FakeStream> stream, const std::shared_ptr<Capture>& self);
  void step(const FakeStream& stream) { ++branches[stream.branch].clock[stream.branch]; }
};

struct FakeRuntime::FakeGraph {
  int number = 0, gpu = 0;
  std::vector<Work> nodes;
  std::vector<ByteAccess> accesses;
  std::string name() const { return "graph " + std::to_string(number); }
};

struct FakeRuntime::FakeLibrary {
  std::string code;
  std::map<std::string, std::unique_ptr<char>> kernels;  // the char's address is the handle
};

template <class Text>
cudaError_t FakeRuntime::enter(const char* call, const Text& text) {
  if (options_.log) calls_.push_back(text());
  if (options_.driver_version == 0) return cudaErrorInsufficientDriver;
  if (sticky_ != cudaSuccess) return sticky_;
  for (std::size_t i = 0; i < failures_.size(); ++i) {
    Failure& failure = failures_[i];
    if (!failure.call.empty() && failure.call != call) continue;
    if (--failure.calls_left > 0) continue;
    const cudaError_t error = failure.error;
    if (failure.sticky) sticky_ = error;
    failures_.erase(failures_.begin() + static_cast<std::ptrdiff_t>(i));
    return error;
  }
  return options_.gpus == 0 ? cudaErrorNoDevice : cudaSuccess;
}

}  // namespace tandem::testing
