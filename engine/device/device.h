// The interfaces of a device: memory spaces, queues, events and kernels. Passed in, never global.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/kernel.h"
#include "engine/device/lane_monitor.h"

namespace tandem {

class Communicator;  // engine/ranks/communicator.h

/// A range of device memory that lives as long as the object.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* address() = 0;  // in the device's own address space
  virtual std::size_t bytes() const = 0;
  /// Makes a reserved range usable up to `bytes` without moving it; false where it cannot.
  virtual bool grow(std::size_t bytes) { return bytes <= this->bytes(); }
};

/// Memory of the host that a device reaches at the link's rate, for as long as the object lives.
/// It has to be destroyed before the memory is freed, and while no copy of it is under way.
class PinnedRange {
 public:
  virtual ~PinnedRange() = default;
};

/// A point in a queue that others wait for. Each record carries a count (a step's number, from 1),
/// greater than those before; who waits names the count that it needs.
class Event {
 public:
  virtual ~Event() = default;
  /// Blocks the calling thread until a record of at least `count` was reached; 0 returns at once.
  /// Does not notify the monitor: monitored lanes wait through `Stream::wait`.
  virtual void synchronize(std::uint64_t count) = 0;
  virtual bool reached(std::uint64_t count) const = 0;
  virtual int id() const { return -1; }  // in the monitor
};

/// A kernel with its arguments, in device addresses. Arguments, accesses and the step context are
/// copied when it is enqueued.
struct KernelCall {
  PreparedKernel* kernel = nullptr;
  KernelArguments arguments = {};
  int inputs = 0, outputs = 0;  // how many pointers
  Operation operation;
};

/// What was enqueued between `begin_capture` and `end_capture`: addresses are fixed, kernels and
/// the step contexts that their arguments point to outlive it.
class Captured {
 public:
  virtual ~Captured() = default;
};

enum class StreamKind : std::uint8_t {
  compute,
  copy_in,
  copy_out,
  collective,  // operations of the device's communicator; parallel to compute, on the cpu too
};

/// An in-order queue of work, fed by one thread at a time. Enqueueing returns at once except on the
/// cpu, where everything runs on the calling thread.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void run(const KernelCall& call) = 0;
  /// A copy's accesses are known: `operation.accesses` is not looked at.
  virtual void copy(void* to, const void* from, std::size_t bytes, const Operation& operation) = 0;
  /// Something that the calling thread itself has done or does now (fills a slot, reads a result);
  /// on the cpu's streams only.
  virtual void note(const Operation& operation) { (void)operation; }
  virtual void record(Event& event, std::uint64_t count) = 0;
  /// What follows runs after the record of `count`. An event of the cpu blocks the calling thread,
  /// one of an accelerator only the queue; it must have been recorded (enqueued) before.
  virtual void wait(Event& event, std::uint64_t count) = 0;
  /// Blocks until all is done; the monitor's host lane comes after it.
  virtual void synchronize() = 0;
  virtual int lane() const { return -1; }  // in the monitor

  /// From now on the stream collects instead of running, and so does every stream that waits for an
  /// event recorded in the capture; all have to be joined by waits before the end. Meanwhile the
  /// host may neither wait nor allocate. Breaking a rule throws Error{runtime}.
  virtual bool can_capture() const { return false; }
  virtual void begin_capture() { assert(false); }
  virtual std::unique_ptr<Captured> end_capture() { return nullptr; }
  /// Runs all of it after what was enqueued here before, and before what comes here next.
  virtual void launch(Captured& captured) { (void)captured, assert(false); }
};

/// What a device has counted since it was made.
struct DeviceCounters {
  std::size_t bytes_in_use = 0, peak_bytes = 0;                      // memory
  std::uint64_t bytes_to_device = 0, bytes_to_host = 0, copies = 0;  // by streams, between spaces
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const std::string& name() const = 0;  // "cpu", "cuda:0", "emulated:0"
  virtual const DeviceFacts& facts() const = 0;
  virtual const KernelList& kernels() const = 0;
  virtual std::size_t memory_bytes() const = 0;  // capacity
  virtual DeviceCounters counters() const { return {}; }
  /// 64-byte aligned, in huge pages where the system offers them. Throws Error{does_not_fit}.
  virtual std::unique_ptr<Memory> allocate(std::size_t bytes) = 0;
  /// Whether that many bytes fresh from `allocate` hold zeros that take no memory until written.
  virtual bool allocates_zeros(std::size_t bytes) const {
    (void)bytes;
    return false;
  }
  /// A range of `bytes` addresses that holds nothing until `Memory::grow`; null where a device has
  /// no such thing.
  virtual std::unique_ptr<Memory> reserve(std::size_t bytes) {
    (void)bytes;
    return nullptr;
  }
  /// Locks pages of the host's memory, so that copies between them and this device neither are
  /// staged nor keep the caller. Null where there is nothing to gain, or the system refuses it:
  /// copies work then, too.
  virtual std::unique_ptr<PinnedRange> pin(void* address, std::size_t bytes) {
    (void)address, (void)bytes;
    return nullptr;
  }
  virtual std::unique_ptr<Stream> make_stream(StreamKind kind = StreamKind::compute,
                                              const std::string& name = "") = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  /// For set-up and between steps: blocking, and after all that is enqueued on the device.
  virtual void to_device(void* to, const void* from, std::size_t bytes) = 0;
  virtual void to_host(void* to, const void* from, std::size_t bytes) = 0;
  /// Blocks until all streams are done; the monitor's host lane comes after them.
  virtual void synchronize() {}
  /// Calls f on the thread and with the thread settings (team size, FTZ/DAZ) of the compute lane.
  virtual void on_lane(const std::function<void()>& f) = 0;
  /// The monitor that sees the device's operations; null where there is none.
  virtual LaneMonitor* monitor() const { return nullptr; }

  /// Operations over all ranks on memory of this device; null in a run of one process. Set before
  /// any stream is made.
  Communicator* communicator() const { return communicator_.get(); }
  void join(std::shared_ptr<Communicator> communicator) { communicator_ = std::move(communicator); }

 private:
  std::shared_ptr<Communicator> communicator_;
};

}  // namespace tandem
