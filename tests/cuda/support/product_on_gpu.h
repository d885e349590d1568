// One product with its operands in memory of a fake GPU.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/cuda/support/product_gpu.h"

namespace tandem::testing {

/// A kernel with its operands in memory of the GPU, filled with varying numbers.
class OnGpu {
 public:
  OnGpu(ProductGpu& gpu, Graph graph) : gpu_(gpu), graph_(std::move(graph)) {
    request_ = plain_request(graph_, graph_.nodes[0], gpu.facts);
  }
  ~OnGpu() {
    prepared_.reset();
    for (void* block : blocks_) gpu_.runtime->release(block);
  }

  KernelRequest& request() { return request_; }
  /// Moves the first element of input or output i by that many elements.
  void shift(bool input, std::size_t i, std::int64_t elements) {
    (input ? shifts_in_ : shifts_out_)[i] = elements;
  }
  PreparedKernel& prepare() {
    const Kernel* kernel = choose_kernel(gpu_.kernels, request_);
    prepared_ = kernel->prepare(request_);
    return *prepared_;
  }
  void run() {
    if (in_.empty()) place();
    prepared_->run({in_.data(), out_.data(), workspace_, nullptr, gpu_.stream});
  }
  float in(std::size_t i, std::int64_t at) const {
    return reinterpret_cast<const float*>(gpu_.runtime->host_view(in_[i]))[at];
  }
  float out(std::int64_t at) const {
    return reinterpret_cast<const float*>(gpu_.runtime->host_view(out_[0]))[at];
  }
  const void* input(std::size_t i) const { return in_[i]; }
  void* output() const { return out_[0]; }
  void place() {
    const auto block = [&](const Operand& operand, std::int64_t shift, float factor) -> void* {
      if (!operand.present) return nullptr;
      const std::int64_t count = span_elements(operand.layout, operand.type.shape) + shift + 8;
      const std::size_t size = size_of(operand.type.dtype);
      void* made = nullptr;
      gpu_.runtime->allocate(made, static_cast<std::size_t>(count) * size);
      blocks_.push_back(made);
      std::byte* const view = gpu_.runtime->host_view(made);
      for (std::int64_t i = 0; size == 4 && i < count; ++i) {
        reinterpret_cast<float*>(view)[i] = factor * static_cast<float>((i * 7 + 3) % 11 - 5);
      }
      return static_cast<char*>(made) + shift * static_cast<std::int64_t>(size);
    };
    for (std::size_t i = 0; i < request_.inputs.size(); ++i) {
      in_.push_back(block(request_.inputs[i], shifts_in_[i], 0.25f));
    }
    out_.push_back(block(request_.outputs[0], shifts_out_[0], 0));
    gpu_.runtime->allocate(workspace_, prepared_->workspace_bytes);
    if (workspace_ != nullptr) blocks_.push_back(workspace_);
  }

 private:
  ProductGpu& gpu_;
  Graph graph_;
  KernelRequest request_;
  std::unique_ptr<PreparedKernel> prepared_;
  std::vector<void*> blocks_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  std::map<std::size_t, std::int64_t> shifts_in_, shifts_out_;
  void* workspace_ = nullptr;
};

}  // namespace tandem::testing
