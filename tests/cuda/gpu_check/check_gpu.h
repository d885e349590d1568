// The GPU under check: its kernels on one stream, operands in its own memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/context.h"
#include "tests/harness/operator_case.h"

namespace tandem::gpu_check {

/// Operands next to each other on the GPU: a write past one is found in the guard of the next.
class GpuOperands final : public testing::OperandMemory {
 public:
  GpuOperands(std::shared_ptr<cuda::Runtime> runtime, cudaStream_t stream)
      : runtime_(std::move(runtime)), stream_(stream) {}
  ~GpuOperands() override;
  GpuOperands(const GpuOperands&) = delete;
  GpuOperands& operator=(const GpuOperands&) = delete;

  // All throw std::runtime_error with the runtime's text.
  void* put(const void* bytes, std::size_t count) override;
  void get(void* to, const void* from, std::size_t count) override;
  void clear() override;
  /// Memory on the GPU with undefined content.
  void* room(std::size_t count);

 private:
  struct Chunk {
    char* memory = nullptr;
    std::size_t bytes = 0, used = 0;
  };
  std::shared_ptr<cuda::Runtime> runtime_;
  cudaStream_t stream_;
  std::vector<Chunk> chunks_;
};

class CheckGpu {
 public:
  /// `cache_folder`: where compiled kernels and plans are kept, which the stages share; "" keeps
  /// none. Throws std::runtime_error if the GPU does not start.
  CheckGpu(std::shared_ptr<cuda::Runtime> runtime, std::shared_ptr<cuda::Libraries> libraries,
           int ordinal = 0, bool allow_tf32 = false, std::string cache_folder = "");
  ~CheckGpu();
  CheckGpu(const CheckGpu&) = delete;
  CheckGpu& operator=(const CheckGpu&) = delete;

  cuda::Runtime& runtime() { return *gpu_->runtime; }
  cuda::Libraries& libraries() { return *gpu_->libraries; }
  const cuda::GpuContext& gpu() const { return *gpu_; }
  const KernelList& kernels() const { return kernels_; }
  void replace_kernels(KernelList kernels) { kernels_ = std::move(kernels); }
  void add_kernel(Kernel kernel) { kernels_.insert(kernels_.begin(), std::move(kernel)); }
  const DeviceFacts& facts() const { return facts_; }
  cudaStream_t stream() const { return stream_; }
  GpuOperands& operands() { return *operands_; }
  /// Options for `run_node`: operands on the GPU, waiting for the stream after each kernel.
  testing::RunOptions run_options();
  /// Waits, and throws std::runtime_error with the first failure.
  void synchronize();
  /// Throws std::runtime_error with the call's name if it failed.
  void check(cudaError_t error, const char* what);
  /// Whether every call fails from here on: a process cannot recover from an error in a kernel.
  bool is_broken() { return runtime().synchronize_gpu() != cudaSuccess; }
  /// Whether the GPU's kernel takes that graph's only node; if not, `why` gets the reason.
  bool takes(const Kernel& kernel, const Graph& graph, std::string* why = nullptr) const;

 private:
  cuda::Gpu gpu_;
  DeviceFacts facts_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<GpuOperands> operands_;
  KernelList kernels_;
};

}  // namespace tandem::gpu_check
