// The ring between who enqueues and the thread of a stream. Room for operations and their pointers
// is made once; enqueueing allocates nothing.
#pragma once

#include <condition_variable>
#include <mutex>
#include <span>
#include <vector>

#include "engine/device/device.h"

namespace tandem {

struct QueuedOperation {
  enum class Kind : std::uint8_t { run, copy, record, wait };
  Kind kind = Kind::run;
  TraceSpan* trace = nullptr;
  // run; addresses as kernels see them
  PreparedKernel* kernel = nullptr;
  void* workspace = nullptr;
  StepContext context;
  int inputs = 0;                  // pointers in front of the outputs'
  void** pointers = nullptr;       // filled by `push`
  std::uint64_t pointers_end = 0;  // likewise
  // copy; addresses as the stream's thread sees them
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  enum class Direction : std::uint8_t { within, to_device, to_host };
  Direction direction = Direction::within;
  double seconds = 0;  // least real time that it takes
  // record, wait
  Event* event = nullptr;  // a CountedEvent where it is recorded
  std::uint64_t count = 0;
};

/// One thread at a time pushes, one takes.
class OperationQueue {
 public:
  /// Blocks while the ring is full.
  void push(const QueuedOperation& operation, std::span<void* const> pointers = {});
  /// The oldest operation, which stays until `pop`; blocks. Null once closed and empty.
  QueuedOperation* front();
  void pop();
  /// Blocks until all that was pushed has been popped.
  void drain();
  void close();

 private:
  std::mutex mutex_;
  std::condition_variable more_, less_;
  std::vector<QueuedOperation> operations_ = std::vector<QueuedOperation>(1024);
  std::uint64_t pushed_ = 0, popped_ = 0;
  std::vector<void*> pointers_ = std::vector<void*>(std::size_t{1} << 14);
  std::uint64_t pointers_pushed_ = 0, pointers_popped_ = 0;
  bool closed_ = false;
};

}  // namespace tandem
