// What devices and lanes report about their operations, and the interface of a listener.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tandem {

/// Bytes that an operation reads or writes, in a device's address space or the host's.
struct ByteAccess {
  const void* address = nullptr;
  std::size_t bytes = 0;
  bool write = false;
};

/// One operation as others see it. The name is read at once; nothing of it is kept.
struct Operation {
  std::string_view name;  // the operator's path; for a copy the value's name
  double seconds = 0;     // on the virtual clock; copies over a link bring their own
  std::span<const ByteAccess> accesses;
};

/// An operation's place in time, for traces. Virtual seconds count from 0, real ones from the
/// monitor's construction; the real ones are 0 until the operation has run.
struct TraceSpan {
  int lane = 0;
  std::string_view name;  // lives as long as the monitor
  std::size_t bytes = 0;  // moved by a copy
  double start = 0, end = 0;
  double real_start = 0, real_end = 0;
};

/// Listens to all lanes of a run. A lane is an in-order sequence of operations: a stream of a
/// device, or a thread of the host. Calls come from several threads; for one lane, one at a time
/// and in the lane's order. An event carries counts that grow with each record.
class LaneMonitor {
 public:
  /// The thread that sets up and launches: what it has done precedes what it enqueues.
  static constexpr int host_lane = 0;

  virtual ~LaneMonitor() = default;
  /// Whether it looks at the bytes that operations touch. Where not, a device need not report what
  /// a captured graph does.
  virtual bool checks_order() const { return true; }
  /// Whether the next operation gets a span, so that it has to be launched by itself.
  virtual bool keeps_trace() const { return false; }
  /// A lane that shares the clock time of `time_of` (a part of a captured graph that runs on that
  /// stream), or has its own (-1).
  virtual int add_lane(std::string_view name, int time_of = -1) = 0;
  /// The lane has ended: all it did precedes what the host lane does next. Its number may be given
  /// to another lane.
  virtual void remove_lane(int lane) = 0;
  virtual int add_event() = 0;
  virtual void remove_event(int event) = 0;

  /// The next operation of the lane; its trace span, or null where none is kept.
  virtual TraceSpan* operation(int lane, const Operation& operation, std::size_t bytes = 0) = 0;
  virtual void record(int lane, int event, std::uint64_t count) = 0;
  /// What follows on the lane comes after the first record of at least `count`; 0 waits for
  /// nothing.
  virtual void wait(int lane, int event, std::uint64_t count) = 0;
  /// What follows on the lane comes after all that `earlier` did so far.
  virtual void join(int lane, int earlier) = 0;
  /// The bytes are free: their next user need not be ordered after earlier ones.
  virtual void forget(const void* address, std::size_t bytes) = 0;
  /// A breach of the rules that a device found itself.
  virtual void report(std::string_view text) = 0;

  virtual double virtual_time(int lane) const = 0;  // seconds: the end of its last operation
  virtual double real_time() const = 0;             // seconds since construction
};

}  // namespace tandem
