#include "kernels/cuda/device/cuda_event.h"

#include <chrono>

#include "kernels/cuda/device/capture.h"
#include "kernels/cuda/device/waiting.h"

namespace tandem::cuda {

CudaEvent::CudaEvent(std::shared_ptr<DeviceShared> device) : device_(std::move(device)) {
  device_->choose();
  try {
    for (Record& record : records_)
      device_->check(device_->runtime->make_event(record.event), "making an event");
    device_->check(device_->runtime->make_event(in_capture_), "making an event");
  } catch (...) {
    for (const Record& record : records_) {
      if (record.event != nullptr) (void)device_->runtime->destroy_event(record.event);
    }
    throw;
  }
  if (device_->monitor() != nullptr) id_ = device_->monitor()->add_event();
}

CudaEvent::~CudaEvent() {
  if (device_->monitor() != nullptr) device_->monitor()->remove_event(id_);
  (void)device_->runtime->set_gpu(device_->options.ordinal);
  for (const Record& record : records_) (void)device_->runtime->destroy_event(record.event);
  (void)device_->runtime->destroy_event(in_capture_);
}

cudaEvent_t CudaEvent::find(std::uint64_t count) const {
  if (last_ < count) return nullptr;
  const std::uint64_t size = records_.size();
  for (std::uint64_t i = written_ > size ? written_ - size : 0; i < written_; ++i) {
    if (records_[i % size].count >= count) return records_[i % size].event;
  }
  return nullptr;
}

void CudaEvent::note_reached(std::uint64_t count) const {
  std::uint64_t known = reached_.load();
  while (known < count && !reached_.compare_exchange_weak(known, count)) {
  }
}

void CudaEvent::synchronize(std::uint64_t count) {
  if (count == 0) return;
  if (captured.load())
    broken_rule(device_->name(), "the host waits for an event that belongs to a capture");
  device_->refuse_in_capture("the host waits");
  if (reached_.load() < count) {
    cudaEvent_t event = nullptr;
    {
      std::unique_lock lock(mutex_);
      // Another thread may enqueue the record, unless its device fails.
      while ((event = find(count)) == nullptr) {
        if (device_->has_failed()) device_->throw_failure();
        recorded_.wait_for(lock, std::chrono::milliseconds(20));
      }
    }
    device_->choose();
    wait_for(*device_, event, "waiting for an event");
    note_reached(count);
  }
  device_->errors.forward();
}

bool CudaEvent::reached(std::uint64_t count) const {
  if (reached_.load() >= count) return true;
  if (captured.load() || device_->capturing.load() == std::this_thread::get_id()) return false;
  cudaEvent_t event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    event = find(count);
  }
  if (event == nullptr) return false;
  device_->choose();
  const cudaError_t error = device_->runtime->query(event);
  if (error == cudaErrorNotReady) return false;
  device_->check(error, "asking for an event");
  note_reached(count);
  return true;
}

void CudaEvent::record(cudaStream_t stream, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  Record& next = records_[written_ % records_.size()];
  device_->check(device_->runtime->record(next.event, stream), "recording an event");
  next.count = count;
  last_ = count;
  ++written_;
  recorded_.notify_all();
}

bool CudaEvent::is_enqueued(std::uint64_t count) const {
  const std::lock_guard lock(mutex_);
  return last_ >= count;
}

void CudaEvent::wait(DeviceShared& of_stream, cudaStream_t stream, std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  const cudaEvent_t event = find(count);
  if (event == nullptr) return;
  of_stream.check(of_stream.runtime->wait(stream, event), "waiting for an event");
}

}  // namespace tandem::cuda
