#include "kernels/emulated/emulated_device.h"

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "kernels/cpu/cpu_device.h"
#include "kernels/emulated/emulated_stream.h"
#include "kernels/emulated/widened.h"

namespace tandem {
namespace {

EmulatedOptions with_monitor(EmulatedOptions options) {
  if (!options.monitor) options.monitor = std::make_shared<OrderChecker>(options.check_order);
  return options;
}

class EmulatedDevice final : public Device {
 public:
  explicit EmulatedDevice(const EmulatedOptions& options)
      : shared_(std::make_shared<EmulatedShared>(options)) {
    facts_ = shared_->cpu->facts();
    facts_.kind = "emulated";
    // Claims that the 16-bit floats are as fast as float32, so that Operator::precision is
    // followed.
    facts_.features.insert(facts_.features.end(), {"bfloat16", "float16"});
    kernels_ = with_widened(shared_->cpu->kernels());
  }

  const std::string& name() const override { return shared_->options.name; }
  const DeviceFacts& facts() const override { return facts_; }
  const KernelList& kernels() const override { return kernels_; }
  std::size_t memory_bytes() const override { return shared_->memory->limit(); }
  DeviceCounters counters() const override {
    DeviceCounters c;
    c.bytes_in_use = shared_->memory->bytes_in_use();
    c.peak_bytes = shared_->memory->peak_bytes();
    c.bytes_to_device = shared_->bytes_to_device;
    c.bytes_to_host = shared_->bytes_to_host;
    c.copies = shared_->copies;
    return c;
  }

  std::unique_ptr<Memory> allocate(std::size_t bytes) override {
    shared_->refuse_in_capture("the host allocates");
    return fresh(shared_->memory->allocate(bytes), bytes);
  }
  std::unique_ptr<Memory> reserve(std::size_t bytes) override {
    shared_->refuse_in_capture("the host allocates");
    return fresh(shared_->memory->reserve(bytes), bytes);
  }

  std::unique_ptr<Stream> make_stream(StreamKind kind, const std::string& name) override {
    const char* const kinds[] = {"compute", "copy_in", "copy_out", "collective"};
    return std::make_unique<EmulatedStream>(
        shared_, name.empty() ? this->name() + "." + kinds[static_cast<int>(kind)] : name);
  }
  std::unique_ptr<Event> make_event() override { return std::make_unique<EmulatedEvent>(shared_); }

  void to_device(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(touched(to, bytes, true), from, bytes);
  }
  void to_host(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, touched(from, bytes, false), bytes);
  }
  void synchronize() override {
    const std::lock_guard lock(shared_->mutex);
    for (EmulatedStream* stream : shared_->streams) stream->synchronize();
  }
  void on_lane(const std::function<void()>& f) override {
    std::thread([&] { shared_->cpu->on_lane(f); }).join();  // the caller keeps its own settings
  }
  LaneMonitor* monitor() const override { return shared_->options.monitor.get(); }

 private:
  std::unique_ptr<Memory> fresh(std::unique_ptr<Memory> memory, std::size_t bytes) {
    if (memory) monitor()->forget(memory->address(), bytes);
    return memory;
  }
  // Bytes that the host copies itself: an operation of the host lane that takes no virtual time.
  void* touched(const void* address, std::size_t bytes, bool write) {
    shared_->refuse_in_capture("the host copies");
    if (!shared_->memory->contains(address)) {
      std::fprintf(stderr, "%s: %p is not in the memory of this device\n", name().c_str(), address);
      std::abort();
    }
    synchronize();
    const ByteAccess access{address, bytes, write};
    monitor()->operation(LaneMonitor::host_lane,
                         {write ? "to_device" : "to_host", 0, std::span(&access, 1)}, bytes);
    return shared_->memory->kernel_view(address);
  }

  std::shared_ptr<EmulatedShared> shared_;
  DeviceFacts facts_;
  KernelList kernels_;
};

}  // namespace

EmulatedShared::EmulatedShared(const EmulatedOptions& from)
    : options(with_monitor(from)),
      memory(std::make_shared<AddressSpace>(options.name, options.memory_bytes)),
      cpu(make_cpu_device(1)) {}

std::unique_ptr<Device> make_emulated_device(const EmulatedOptions& options) {
  return std::make_unique<EmulatedDevice>(options);
}

}  // namespace tandem
