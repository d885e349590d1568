// A stream of the CUDA device.
#pragma once

#include <memory>
#include <string>

#include "engine/device/capture_order.h"
#include "kernels/cuda/device/cuda_event.h"
#include "kernels/cuda/device/span_times.h"
#include "kernels/cuda/device/step_contexts.h"

namespace tandem::cuda {

class Capture;

class CudaStream final : public Stream {
 public:
  CudaStream(std::shared_ptr<DeviceShared> device, const std::string& name);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  void run(const KernelCall& call) override;
  void copy(void* to, const void* from, std::size_t bytes, const Operation& operation) override;
  void record(Event& event, std::uint64_t count) override;
  void wait(Event& event, std::uint64_t count) override;
  void synchronize() override;
  int lane() const override { return lane_; }
  /// False while a trace is kept, for which operations are timed one by one.
  bool can_capture() const override {
    const LaneMonitor* const monitor = device_->monitor();
    return device_->options.capture && (monitor == nullptr || !monitor->keeps_trace());
  }
  void begin_capture() override;
  std::unique_ptr<Captured> end_capture() override;
  void launch(Captured& captured) override;

  const std::string& name() const { return name_; }
  cudaStream_t handle() const { return stream_; }
  int gpu() const { return device_->options.ordinal; }
  bool is_capturing() const { return capture_ != nullptr; }

 private:
  friend class Capture;
  friend class CaptureOrder<CudaStream>;
  friend class CudaCaptured;

  [[noreturn]] void break_rule(const std::string& text);
  void check_addresses(const KernelCall& call);
  /// Tells the monitor, where there is one; its span.
  TraceSpan* tell(const Operation& operation, std::size_t bytes);

  const std::shared_ptr<DeviceShared> device_;
  const std::string name_;
  int lane_ = -1;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<StepContexts> contexts_;
  std::unique_ptr<SpanTimes> times_;
  std::shared_ptr<Capture> capture_;  // under way
  int branch_ = 0;                    // this stream's branch of the capture
  std::string last_;  // the operation that was enqueued last, shortened; never grows
};

}  // namespace tandem::cuda
