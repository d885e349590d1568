// Times on the card's own clock, and what is timed: pinned memory, a product on the card's kernel.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "tests/cuda/gpu_check/check_card.h"

namespace tandem::gpu_check {

/// Memory of the host that cards copy at full speed; holds small numbers that are not zero.
class Pinned {
 public:
  Pinned(CheckCard& card, std::size_t bytes);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  void* data() const { return memory_; }

 private:
  CheckCard& card_;
  void* memory_ = nullptr;
};

/// A stream of its own.
class OwnStream {
 public:
  explicit OwnStream(CheckCard& card);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  CheckCard& card_;
  cudaStream_t stream_ = nullptr;
};

/// An event that knows its time.
class Timer {
 public:
  explicit Timer(CheckCard& card);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  void record(cudaStream_t stream);
  /// Both were recorded and reached.
  double seconds_since(const Timer& before) const;

 private:
  CheckCard& card_;
  cudaEvent_t event_ = nullptr;
};

/// A[m, k] B[k, n] on the first of the card's kernels that takes it, prepared, operands on the card
/// until its destruction or the next `operands().clear()`. Throws where no kernel takes it.
class PreparedProduct {
 public:
  PreparedProduct(CheckCard& card, std::int64_t m, std::int64_t k, std::int64_t n, DType type);
  void run() const { run(card_.stream()); }
  void run(cudaStream_t stream) const;
  const std::string& kernel() const { return name_; }
  /// The m·n results.
  HostTensor result() const;
  /// Makes them NaN.
  void poison() const;

 private:
  CheckCard& card_;
  std::string name_;
  OperatorSet operators_;
  Graph graph_;
  std::unique_ptr<PreparedKernel> kernel_;
  std::vector<const void*> inputs_;
  void* output_ = nullptr;
  void* workspace_ = nullptr;
  const StepContext* context_ = nullptr;
};

/// The median of `repetitions`, after one to warm up: what `work` enqueues on the card's stream.
template <class Work>
double seconds_of(CheckCard& card, int repetitions, Work work);

}  // namespace tandem::gpu_check

#include <algorithm>

namespace tandem::gpu_check {

template <class Work>
double seconds_of(CheckCard& card, int repetitions, Work work) {
  Timer before(card), after(card);
  std::vector<double> seconds;
  for (int i = 0; i <= repetitions; ++i) {
    before.record(card.stream());
    work();
    after.record(card.stream());
    card.synchronize();
    if (i > 0) seconds.push_back(after.seconds_since(before));
  }
  std::sort(seconds.begin(), seconds.end());
  return std::max(seconds[seconds.size() / 2], 1e-9);
}

}  // namespace tandem::gpu_check
