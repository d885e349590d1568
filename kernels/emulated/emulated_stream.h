// A stream of the emulated device: a thread that works through a ring of operations.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "engine/device/capture_order.h"
#include "engine/device/counted_event.h"
#include "kernels/cpu/operation_queue.h"
#include "kernels/emulated/address_space.h"
#include "kernels/emulated/emulated_device.h"

namespace tandem {

class Capture;
class EmulatedStream;

/// What the parts of one emulated device share.
struct EmulatedShared {
  explicit EmulatedShared(const EmulatedOptions& from);

  EmulatedOptions options;  // with a monitor
  std::shared_ptr<AddressSpace> memory;
  std::unique_ptr<Device> cpu;  // kernels and thread settings
  std::mutex mutex;
  std::vector<EmulatedStream*> streams;
  std::atomic<std::thread::id> capturing{};  // the thread that captures
  std::atomic<std::uint64_t> bytes_to_device{0}, bytes_to_host{0}, copies{0};

  LaneMonitor& monitor() const { return *options.monitor; }
  /// Throws where the calling thread is capturing.
  void refuse_in_capture(const char* what) const;
};

/// Throws Error{runtime}: a rule of capture or of streams is broken.
[[noreturn]] void broken_rule(const std::string& device, const std::string& text);

class EmulatedEvent final : public CountedEvent {
 public:
  explicit EmulatedEvent(std::shared_ptr<EmulatedShared> device)
      : CountedEvent(device->options.monitor), device_(std::move(device)) {}
  void synchronize(std::uint64_t count) override;

  // Recorded in a capture: which, and which record in it. Stays until a record outside.
  std::atomic<bool> captured{false};
  std::shared_ptr<Capture> capture;
  int captured_record = -1;

 private:
  const std::shared_ptr<EmulatedShared> device_;
};

class EmulatedStream final : public Stream {
 public:
  EmulatedStream(std::shared_ptr<EmulatedShared> device, const std::string& name);
  ~EmulatedStream() override;

  void run(const KernelCall& call) override;
  void copy(void* to, const void* from, std::size_t bytes, const Operation& operation) override;
  void record(Event& event, std::uint64_t count) override;
  void wait(Event& event, std::uint64_t count) override;
  void synchronize() override;
  int lane() const override { return lane_; }
  bool can_capture() const override { return device_->options.capture; }
  void begin_capture() override;
  std::unique_ptr<Captured> end_capture() override;
  void launch(Captured& captured) override;

  const std::string& name() const { return name_; }

 private:
  friend class CaptureOrder<EmulatedStream>;
  friend class EmulatedCaptured;

  /// Reports the operation to the monitor as part of `lane` and puts it into the ring.
  void enqueue(int lane, QueuedOperation& queued, const Operation& declared,
               std::span<void* const> pointers);
  void enqueue_record(int lane, CountedEvent& event, std::uint64_t count);
  void enqueue_wait(int lane, CountedEvent& event, std::uint64_t count);
  [[noreturn]] void break_rule(const std::string& text);
  void* kernel_pointer(const void* address, const Operation& operation, const char* what) const;
  void work();
  void execute(QueuedOperation& operation);

  const std::shared_ptr<EmulatedShared> device_;
  const std::string name_;
  int lane_ = -1;
  OperationQueue queue_;
  std::vector<void*> pointers_;       // inputs and outputs of the last kernel, as kernels see them
  std::shared_ptr<Capture> capture_;  // under way
  int branch_ = 0;                    // this stream's branch of the capture
  std::atomic<bool> started_{false};
  std::thread thread_;
};

}  // namespace tandem
