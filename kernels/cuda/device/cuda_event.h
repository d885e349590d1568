// An event of the CUDA device: a ring of CUDA's events, one for each of the last records.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "kernels/cuda/device/device_shared.h"

namespace tandem::cuda {

class Capture;

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(std::shared_ptr<DeviceShared> device);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  void synchronize(std::uint64_t count) override;
  /// During a capture it only repeats the answers that were known before.
  bool reached(std::uint64_t count) const override;
  int id() const override { return id_; }

  /// Enqueues a record that was reported to the device's monitor. The GPU is chosen.
  void record(cudaStream_t stream, std::uint64_t count);
  /// Whether a record of at least `count` is enqueued.
  bool is_enqueued(std::uint64_t count) const;
  /// The stream waits for the first record of at least `count` that is still known; later ones come
  /// later on the same queue.
  void wait(DeviceShared& of_stream, cudaStream_t stream, std::uint64_t count);

  // Recorded in a capture: which, and which record in it. Stays until a record outside.
  std::atomic<bool> captured{false};
  std::shared_ptr<Capture> capture;
  int captured_record = -1;
  cudaEvent_t in_capture() const { return in_capture_; }

 private:
  struct Record {
    cudaEvent_t event = nullptr;
    std::uint64_t count = 0;  // 0: none yet
  };
  /// Null where no such record is enqueued. The mutex is locked.
  cudaEvent_t find(std::uint64_t count) const;
  void note_reached(std::uint64_t count) const;

  const std::shared_ptr<DeviceShared> device_;
  int id_ = -1;
  cudaEvent_t in_capture_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::condition_variable recorded_;
  std::array<Record, 4> records_;
  std::uint64_t written_ = 0, last_ = 0;  // records so far, the count of the last one
  mutable std::atomic<std::uint64_t> reached_{0};
};

}  // namespace tandem::cuda
