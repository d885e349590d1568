// What the kernels of one GPU share: its runtime calls, libraries, properties, and the first call
// that failed.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "engine/device/kernel.h"
#include "kernels/cuda/libraries/libraries.h"
#include "kernels/cuda/runtime/runtime.h"

namespace tandem::cuda {

struct GpuContext {
  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<Libraries> libraries;
  int gpu = 0;
  GpuProperties properties;
  bool allow_tf32 = false;
  std::string cache_folder;  // folder for compiled kernels and library plans; "": none is kept

  /// Notes the first failure of a kernel's run, which must not throw; the stream throws it after.
  void fail(const char* what, const std::string& why);
  /// Empty where nothing has failed. Forgets it.
  std::string take_failure();
  /// `KernelArguments::queue` is the stream.
  void launch(const Launch& launch, void* queue);

 private:
  std::mutex mutex_;
  std::atomic<bool> failed_{false};  // kernels that run well take no lock
  std::string failure_;
};

using Gpu = std::shared_ptr<GpuContext>;

/// The ordered list of a GPU's kernels, best first. There is no reference at the end: an operator
/// without a kernel is refused.
KernelList cuda_kernels(const Gpu& gpu);

// The parts.
void add_pointwise_kernels(
    KernelList& list,
    const Gpu& gpu);  // scalar operators, Fused, Copy, Cast, Concat, Pad, Gather
void add_reduction_kernels(KernelList& list,
                           const Gpu& gpu);  // reductions, softmax, losses, normalisation, dropout
void add_update_kernels(KernelList& list, const Gpu& gpu);   // optimizers, clipping
void add_row_kernels(KernelList& list, const Gpu& gpu);      // lookups, row sums and updates
void add_product_kernels(KernelList& list, const Gpu& gpu);  // MatMul, Gemm by cuBLASLt
void add_network_kernels(KernelList& list, const Gpu& gpu);  // convolution, pooling, attention

}  // namespace tandem::cuda
