// The interfaces of a device: memory spaces, queues, events and kernels. Passed in, never global.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/runtime/kernel.h"

namespace tandem {

/// A range of device memory that lives as long as the object.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* address() = 0;  // in the device's own address space
  virtual std::size_t bytes() const = 0;
  /// Makes a reserved range usable up to `bytes` without moving it; false where it cannot.
  virtual bool grow(std::size_t bytes) { return bytes <= this->bytes(); }
};

class Event {
 public:
  virtual ~Event() = default;
};

/// An in-order queue of work. Enqueueing returns at once except on the cpu's own lane, where it
/// runs.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual void run(PreparedKernel& kernel, const KernelArguments& arguments) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void record(Event& event) = 0;
  virtual void wait(Event& event) = 0;
  virtual void synchronize() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const std::string& name() const = 0;  // "cpu", "cuda:0", "emulated:0"
  virtual const DeviceFacts& facts() const = 0;
  virtual const KernelList& kernels() const = 0;
  virtual std::size_t memory_bytes() const = 0;  // capacity
  /// 64-byte aligned, in huge pages where the system offers them. Throws Error{does_not_fit}.
  virtual std::unique_ptr<Memory> allocate(std::size_t bytes) = 0;
  /// A range of `bytes` addresses that holds nothing until `Memory::grow`; null where a device has
  /// no such thing.
  virtual std::unique_ptr<Memory> reserve(std::size_t bytes) {
    (void)bytes;
    return nullptr;
  }
  virtual std::unique_ptr<Stream> make_stream() = 0;
  virtual std::unique_ptr<Event> make_event() = 0;
  virtual void to_device(void* to, const void* from, std::size_t bytes) = 0;  // blocking
  virtual void to_host(void* to, const void* from, std::size_t bytes) = 0;    // blocking
  /// Calls f on the thread and with the thread settings (team size, FTZ/DAZ) of the compute lane.
  virtual void on_lane(const std::function<void()>& f) = 0;
};

}  // namespace tandem
