// Real times of a stream's operations, for traces: timers on the stream around each of them.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/cuda/device/device_shared.h"

namespace tandem::cuda {

class SpanTimes {
 public:
  SpanTimes(DeviceShared& device, cudaStream_t stream) : device_(device), stream_(stream) {}
  ~SpanTimes();
  SpanTimes(const SpanTimes&) = delete;
  SpanTimes& operator=(const SpanTimes&) = delete;

  /// To be called before and after the operation is enqueued; null where no trace is kept. The
  /// first call waits for the stream: the GPU's time is compared with the monitor's.
  void begin(TraceSpan* span);
  void end(TraceSpan* span);
  /// Fills in the spans so far. The stream is done.
  void collect();

 private:
  struct Timed {
    TraceSpan* span = nullptr;
    cudaEvent_t from = nullptr, until = nullptr;
  };
  void make_base();
  void record(cudaEvent_t& timer);

  DeviceShared& device_;
  const cudaStream_t stream_;
  cudaEvent_t base_ = nullptr;
  double base_time_ = 0;      // the monitor's time when `base_` was reached
  std::vector<Timed> timed_;  // the first `count_` wait for `collect`; timers are used again
  std::size_t count_ = 0;
};

}  // namespace tandem::cuda
