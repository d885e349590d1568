// What the parts of one CUDA device share: its GPU, limits, counters, and the call that failed
// first.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "engine/graph/error.h"
#include "kernels/cuda/context.h"
#include "kernels/cuda/cuda_devices.h"
#include "kernels/cuda/device/error_relay.h"

namespace tandem::cuda {

class CudaStream;

/// Throws Error{runtime}: a rule of capture or of streams is broken. The device stays usable.
[[noreturn]] void broken_rule(const std::string& device, const std::string& text);

class DeviceShared {
 public:
  /// The GPU can be used.
  DeviceShared(const CudaOptions& options, std::shared_ptr<Runtime> runtime,
               std::shared_ptr<Libraries> libraries);
  ~DeviceShared();

  const CudaOptions options;
  const std::shared_ptr<Runtime> runtime;
  Gpu gpu;
  std::size_t limit = 0;  // bytes
  ErrorRelay errors;
  std::atomic<std::thread::id> capturing{};  // the thread that captures
  std::atomic<std::uint64_t> bytes_to_device{0}, bytes_to_host{0}, copies{0};
  std::mutex streams_mutex;
  std::vector<CudaStream*> streams;

  LaneMonitor* monitor() const { return options.monitor.get(); }
  bool checks_order() const { return monitor() != nullptr && monitor()->checks_order(); }
  const std::string& name() const { return options.name; }

  /// To be called before runtime calls: chooses the GPU for the calling thread. Throws what has
  /// failed before; where a failure is found by this call, `before` is the operation that was
  /// enqueued last.
  void choose(std::string_view before = {});
  /// Throws Error{runtime} where the call failed, now and in all later calls: "cuda:0: `what`
  /// failed", with the operation's path and CUDA's text. Breaches of capture's rules leave the
  /// device as it was.
  void check(cudaError_t error, const char* what, std::string_view operation = {});
  /// Like `check`, for errors that a kernel has recorded while it ran.
  void check_kernel(std::string_view operation);
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  [[noreturn]] void throw_failure() const;
  /// Throws where the calling thread is capturing.
  void refuse_in_capture(const char* what) const;

  // Memory.
  void* allocate(std::size_t bytes);  // throws Error{does_not_fit}
  void release(void* memory) noexcept;
  bool contains(const void* address) const;  // also one past an end
  std::size_t bytes_in_use() const;
  std::size_t peak_bytes() const;

 private:
  [[noreturn]] void fail(const char* what, std::string_view operation, const std::string& why);

  std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  Diagnostic failure_;
  mutable std::mutex memory_mutex_;
  std::map<std::uintptr_t, std::size_t> blocks_;
  std::size_t in_use_ = 0, peak_ = 0;
};

}  // namespace tandem::cuda
