// Times on the GPU's own clock, with pinned memory and a product to be timed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "tests/cuda/gpu_check/check_gpu.h"

namespace tandem::gpu_check {

/// Memory of the host that GPUs copy at full speed; holds small numbers that are not zero.
class Pinned {
 public:
  Pinned(CheckGpu& gpu, std::size_t bytes);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  void* data() const { return memory_; }

 private:
  CheckGpu& gpu_;
  void* memory_ = nullptr;
};

/// A stream for the check's own use.
class OwnStream {
 public:
  explicit OwnStream(CheckGpu& gpu);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  CheckGpu& gpu_;
  cudaStream_t stream_ = nullptr;
};

/// An event that has a time stamp.
class Timer {
 public:
  explicit Timer(CheckGpu& gpu);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  void record(cudaStream_t stream);
  /// Both must have been recorded and reached.
  double seconds_since(const Timer& before) const;

 private:
  CheckGpu& gpu_;
  cudaEvent_t event_ = nullptr;
};

/// A[m, k] B[k, n], prepared on the first of the GPU's kernels that takes it. Operands stay on the
/// GPU until its destruction or the next `operands().clear()`. Throws if no kernel takes it.
class PreparedProduct {
 public:
  PreparedProduct(CheckGpu& gpu, std::int64_t m, std::int64_t k, std::int64_t n, DType type);
  void run() const { run(gpu_.stream()); }
  void run(cudaStream_t stream) const;
  const std::string& kernel() const { return name_; }
  /// The m·n elements of the result.
  HostTensor result() const;
  /// Fills the result with NaN.
  void poison() const;

 private:
  CheckGpu& gpu_;
  std::string name_;
  OperatorSet operators_;
  Graph graph_;
  std::unique_ptr<PreparedKernel> kernel_;
  std::vector<const void*> inputs_;
  void* output_ = nullptr;
  void* workspace_ = nullptr;
  const StepContext* context_ = nullptr;
};

/// The median of `repetitions`, after one to warm up: the time of the work that `work` enqueues on
/// the GPU's stream.
template <class Work>
double seconds_of(CheckGpu& gpu, int repetitions, Work work);

}  // namespace tandem::gpu_check

#include <algorithm>

namespace tandem::gpu_check {

template <class Work>
double seconds_of(CheckGpu& gpu, int repetitions, Work work) {
  Timer before(gpu), after(gpu);
  std::vector<double> seconds;
  for (int i = 0; i <= repetitions; ++i) {
    before.record(gpu.stream());
    work();
    after.record(gpu.stream());
    gpu.synchronize();
    if (i > 0) seconds.push_back(after.seconds_since(before));
  }
  std::sort(seconds.begin(), seconds.end());
  return std::max(seconds[seconds.size() / 2], 1e-9);
}

}  // namespace tandem::gpu_check
