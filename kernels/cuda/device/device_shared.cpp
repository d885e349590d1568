#include "kernels/cuda/device/device_shared.h"

#include <algorithm>
#include <utility>

#include "engine/graph/align.h"

namespace tandem::cuda {
namespace {

constexpr std::size_t alignment = 64;  // as plans count; CUDA's own is greater

bool is_of_capture(cudaError_t error) {
  return error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread;
}

/// Libraries take memory of the GPU themselves when their kernels are first used.
std::size_t kept_for_libraries(std::size_t free) {
  return std::min(free / 16, std::size_t{1} << 30);
}

Gpu make_gpu(const CudaOptions& options, std::shared_ptr<Runtime> runtime,
             std::shared_ptr<Libraries> libraries) {
  auto gpu = std::make_shared<GpuContext>();
  gpu->runtime = std::move(runtime);
  gpu->libraries = std::move(libraries);
  gpu->gpu = options.ordinal;
  gpu->allow_tf32 = options.allow_tf32;
  gpu->cache_folder = options.cache_folder;
  return gpu;
}

}  // namespace

void broken_rule(const std::string& device, const std::string& text) {
  throw Error(ErrorKind::runtime, Diagnostic{.message = device + ": " + text});
}

DeviceShared::DeviceShared(const CudaOptions& from, std::shared_ptr<Runtime> calls,
                           std::shared_ptr<Libraries> libraries)
    : options(from),
      runtime(std::move(calls)),
      gpu(make_gpu(from, runtime, std::move(libraries))),
      errors(runtime) {
  choose();
  check(runtime->properties(options.ordinal, gpu->properties), "asking for the GPU's properties");
  std::size_t free = 0, total = 0;
  check(runtime->free_bytes(free, total), "asking for the GPU's free memory");
  limit = options.memory_bytes != 0 ? options.memory_bytes : free - kept_for_libraries(free);
  check(errors.open(), "taking pinned memory");
}

DeviceShared::~DeviceShared() {
  (void)runtime->set_gpu(options.ordinal);
  errors.close();
}

void DeviceShared::choose(std::string_view before) {
  if (has_failed()) throw_failure();
  check(runtime->set_gpu(options.ordinal), "choosing the GPU", before);
}

void DeviceShared::throw_failure() const {
  const std::lock_guard lock(failure_mutex_);
  throw Error(ErrorKind::runtime, failure_);
}

void DeviceShared::fail(const char* what, std::string_view operation, const std::string& why) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (!has_failed()) {
      failure_.message = name() + ": " + what + " failed";
      failure_.path = operation;
      failure_.got = why;
      failure_.fix =
          "a GPU reports what goes wrong in a kernel at a later call: with the environment "
          "variable CUDA_LAUNCH_BLOCKING=1 the operator named here is the one that failed";
      failed_.store(true, std::memory_order_release);
    }
  }
  throw_failure();
}

void DeviceShared::check(cudaError_t error, const char* what, std::string_view operation) {
  if (error == cudaSuccess) return;
  const std::string why = runtime->error_text(error);
  if (is_of_capture(error)) broken_rule(name(), std::string(what) + ": " + why);
  fail(what, operation, why);
}

void DeviceShared::check_kernel(std::string_view operation) {
  const std::string why = gpu->take_failure();
  if (!why.empty()) fail("a kernel", operation, why);
}

void DeviceShared::refuse_in_capture(const char* what) const {
  if (capturing.load() == std::this_thread::get_id())
    broken_rule(name(), std::string(what) + " while capturing");
}

void* DeviceShared::allocate(std::size_t bytes) {
  const std::size_t charged = align_up(bytes, alignment);
  const auto does_not_fit = [&](const std::string& expected, std::size_t used) {
    throw Error(
        ErrorKind::does_not_fit,
        Diagnostic{
            .message = name() + " has no memory left",
            .expected = expected,
            .got = std::to_string(bytes) + " bytes wanted, " + std::to_string(used) + " in use",
            .fix = "place less on " + name() + ", use a smaller batch or more micro-batches"});
  };
  choose();
  const std::lock_guard lock(memory_mutex_);
  if (charged < bytes || charged > limit - std::min(in_use_, limit))
    does_not_fit("at most " + std::to_string(limit) + " bytes", in_use_);
  void* memory = nullptr;
  const cudaError_t error = runtime->allocate(memory, std::max<std::size_t>(bytes, 1));
  if (error == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    check(runtime->free_bytes(free, total), "asking for the GPU's free memory");
    does_not_fit("at most " + std::to_string(free) + " bytes, which the GPU has free of " +
                     std::to_string(total),
                 in_use_);
  }
  check(error, "taking memory");
  blocks_[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
  in_use_ += charged;
  peak_ = std::max(peak_, in_use_);
  return memory;
}

void DeviceShared::release(void* memory) noexcept {
  // A GPU that has failed gives nothing back; the process ends soon.
  (void)runtime->set_gpu(options.ordinal);
  const std::lock_guard lock(memory_mutex_);  // the next one to allocate may get this address
  (void)runtime->release(memory);
  const auto block = blocks_.find(reinterpret_cast<std::uintptr_t>(memory));
  in_use_ -= align_up(block->second, alignment);
  blocks_.erase(block);
}

bool DeviceShared::contains(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(memory_mutex_);
  auto block = blocks_.upper_bound(at);
  if (block == blocks_.begin()) return false;
  --block;
  return at - block->first <= block->second;
}

std::size_t DeviceShared::bytes_in_use() const {
  const std::lock_guard lock(memory_mutex_);
  return in_use_;
}

std::size_t DeviceShared::peak_bytes() const {
  const std::lock_guard lock(memory_mutex_);
  return peak_;
}

}  // namespace tandem::cuda
