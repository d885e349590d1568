// A device that counts the captured segments which its streams launch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "engine/device/device.h"

namespace tandem::gpu_check {

class CountedStream final : public Stream {
 public:
  CountedStream(std::unique_ptr<Stream> inner, std::shared_ptr<std::uint64_t> launches)
      : inner_(std::move(inner)), launches_(std::move(launches)) {}
  void run(const KernelCall& call) override { inner_->run(call); }
  void copy(void* to, const void* from, std::size_t bytes, const Operation& operation) override {
    inner_->copy(to, from, bytes, operation);
  }
  void note(const Operation& operation) override { inner_->note(operation); }
  void record(Event& event, std::uint64_t count) override { inner_->record(event, count); }
  void wait(Event& event, std::uint64_t count) override { inner_->wait(event, count); }
  void synchronize() override { inner_->synchronize(); }
  int lane() const override { return inner_->lane(); }
  bool can_capture() const override { return inner_->can_capture(); }
  void begin_capture() override { inner_->begin_capture(); }
  std::unique_ptr<Captured> end_capture() override { return inner_->end_capture(); }
  void launch(Captured& captured) override {
    ++*launches_;
    inner_->launch(captured);
  }

 private:
  std::unique_ptr<Stream> inner_;
  std::shared_ptr<std::uint64_t> launches_;
};

class CountedDevice : public Device {
 public:
  CountedDevice(std::unique_ptr<Device> inner, std::shared_ptr<std::uint64_t> launches)
      : inner_(std::move(inner)), launches_(std::move(launches)) {}
  const std::string& name() const override { return inner_->name(); }
  const DeviceFacts& facts() const override { return inner_->facts(); }
  const KernelList& kernels() const override { return inner_->kernels(); }
  std::size_t memory_bytes() const override { return inner_->memory_bytes(); }
  DeviceCounters counters() const override { return inner_->counters(); }
  std::unique_ptr<Memory> allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  bool allocates_zeros(std::size_t bytes) const override { return inner_->allocates_zeros(bytes); }
  std::unique_ptr<Memory> reserve(std::size_t bytes) override { return inner_->reserve(bytes); }
  std::unique_ptr<PinnedRange> pin(void* address, std::size_t bytes) override {
    return inner_->pin(address, bytes);
  }
  std::unique_ptr<Stream> make_stream(StreamKind kind, const std::string& name) override {
    return std::make_unique<CountedStream>(inner_->make_stream(kind, name), launches_);
  }
  std::unique_ptr<Event> make_event() override { return inner_->make_event(); }
  void to_device(void* to, const void* from, std::size_t bytes) override {
    inner_->to_device(to, from, bytes);
  }
  void to_host(void* to, const void* from, std::size_t bytes) override {
    inner_->to_host(to, from, bytes);
  }
  void synchronize() override { inner_->synchronize(); }
  void on_lane(const std::function<void()>& f) override { inner_->on_lane(f); }
  LaneMonitor* monitor() const override { return inner_->monitor(); }

 private:
  std::unique_ptr<Device> inner_;
  std::shared_ptr<std::uint64_t> launches_;
};

inline std::unique_ptr<Device> count_captures(std::unique_ptr<Device> device,
                                              std::shared_ptr<std::uint64_t> launches) {
  return std::make_unique<CountedDevice>(std::move(device), std::move(launches));
}

}  // namespace tandem::gpu_check
