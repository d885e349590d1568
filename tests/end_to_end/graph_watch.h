// Emulated accelerators of a policy that count captured and launched graphs, and can fail.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "engine/graph/error.h"
#include "kernels/emulated/emulated_device.h"
#include "tests/cuda/gpu_check/counted_captures.h"
#include "tests/end_to_end/placed_training.h"

namespace tandem::testing {

/// What all devices of a run did with graphs, and which errors they must make.
struct GraphWatch {
  std::uint64_t captures = 0, launches = 0;
  std::string not_captured;    // path of a kernel whose capture fails; "": none
  bool forgets_waits = false;  // streams that compute skip all waits
};

class WatchedStream final : public Stream {
 public:
  WatchedStream(std::unique_ptr<Stream> inner, GraphWatch& watch, bool computes)
      : inner_(std::move(inner)), watch_(watch), computes_(computes) {}
  void run(const KernelCall& call) override {
    if (captures_ && call.operation.name == watch_.not_captured) {
      Diagnostic d;
      d.message = "this kernel cannot be captured";
      d.path = watch_.not_captured;
      throw Error(ErrorKind::runtime, std::move(d));
    }
    inner_->run(call);
  }
  void copy(void* to, const void* from, std::size_t bytes, const Operation& operation) override {
    inner_->copy(to, from, bytes, operation);
  }
  void record(Event& event, std::uint64_t count) override { inner_->record(event, count); }
  void wait(Event& event, std::uint64_t count) override {
    if (!computes_ || !watch_.forgets_waits) inner_->wait(event, count);
  }
  void synchronize() override { inner_->synchronize(); }
  int lane() const override { return inner_->lane(); }
  bool can_capture() const override { return inner_->can_capture(); }
  void begin_capture() override {
    inner_->begin_capture();
    captures_ = true;
  }
  std::unique_ptr<Captured> end_capture() override {
    captures_ = false;
    auto captured = inner_->end_capture();
    ++watch_.captures;
    return captured;
  }
  void launch(Captured& captured) override {
    ++watch_.launches;
    inner_->launch(captured);
  }

 private:
  std::unique_ptr<Stream> inner_;
  GraphWatch& watch_;
  bool computes_, captures_ = false;
};

class WatchedDevice final : public gpu_check::CountedDevice {
 public:
  WatchedDevice(std::unique_ptr<Device> inner, GraphWatch& watch)
      : CountedDevice(std::move(inner), std::make_shared<std::uint64_t>(0)), watch_(watch) {}
  std::unique_ptr<Stream> make_stream(StreamKind kind, const std::string& name) override {
    return std::make_unique<WatchedStream>(CountedDevice::make_stream(kind, name), watch_,
                                           kind == StreamKind::compute);
  }

 private:
  GraphWatch& watch_;
};

/// Makes accelerators of 256 MiB, with graphs or without; `watch` must outlive them.
inline api::PlacingArguments watched(GraphWatch& watch, bool capture = true) {
  api::PlacingArguments arguments;
  arguments.make_device = [&watch, capture](const ResolvedDevice& device,
                                            const std::shared_ptr<OrderChecker>& monitor) {
    EmulatedOptions options;
    options.name = device.name;
    options.memory_bytes = std::size_t{256} << 20;
    options.capture = capture;
    options.monitor = monitor;
    return std::make_unique<WatchedDevice>(make_emulated_device(options), watch);
  };
  return arguments;
}

}  // namespace tandem::testing
