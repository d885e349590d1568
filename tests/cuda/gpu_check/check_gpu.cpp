#include "tests/cuda/gpu_check/check_gpu.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace tandem::gpu_check {
namespace {

constexpr std::size_t least_chunk = std::size_t{16} << 20, alignment = 256;

void check_call(cuda::Runtime& runtime, cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string(what) + " failed: " + runtime.error_text(error));
}

}  // namespace

GpuOperands::~GpuOperands() {
  for (const Chunk& chunk : chunks_) (void)runtime_->release(chunk.memory);
}

void* GpuOperands::room(std::size_t count) {
  const std::size_t bytes =
      (std::max<std::size_t>(count, 1) + alignment - 1) / alignment * alignment;
  for (Chunk& chunk : chunks_) {
    if (chunk.bytes - chunk.used < bytes) continue;
    void* const result = chunk.memory + chunk.used;
    chunk.used += bytes;
    return result;
  }
  Chunk chunk;
  chunk.bytes = std::max(bytes, least_chunk);
  void* memory = nullptr;
  check_call(*runtime_, runtime_->allocate(memory, chunk.bytes), "an allocation on the GPU");
  chunk.memory = static_cast<char*>(memory);
  chunk.used = bytes;
  chunks_.push_back(chunk);
  return memory;
}

void* GpuOperands::put(const void* bytes, std::size_t count) {
  void* const result = room(count);
  if (count == 0) return result;
  check_call(*runtime_, runtime_->copy(result, bytes, count, stream_), "a copy to the GPU");
  check_call(*runtime_, runtime_->synchronize(stream_), "waiting for a copy to the GPU");
  return result;
}

void GpuOperands::get(void* to, const void* from, std::size_t count) {
  if (count == 0) return;
  check_call(*runtime_, runtime_->copy(to, from, count, stream_), "a copy from the GPU");
  check_call(*runtime_, runtime_->synchronize(stream_), "waiting for a copy from the GPU");
}

void GpuOperands::clear() {
  for (Chunk& chunk : chunks_) chunk.used = 0;
}

CheckGpu::CheckGpu(std::shared_ptr<cuda::Runtime> runtime,
                   std::shared_ptr<cuda::Libraries> libraries, int ordinal, bool allow_tf32,
                   std::string cache_folder)
    : gpu_(std::make_shared<cuda::GpuContext>()) {
  gpu_->runtime = std::move(runtime);
  gpu_->libraries = std::move(libraries);
  gpu_->gpu = ordinal;
  gpu_->allow_tf32 = allow_tf32;
  gpu_->cache_folder = std::move(cache_folder);
  check(this->runtime().set_gpu(ordinal), "choosing the GPU");
  check(this->runtime().properties(ordinal, gpu_->properties), "asking for the GPU's properties");
  check(this->runtime().make_stream(stream_), "making a stream");
  operands_ = std::make_unique<GpuOperands>(gpu_->runtime, stream_);
  facts_.kind = "cuda";
  facts_.features = {"float16"};
  if (gpu_->properties.major >= 8)
    facts_.features.insert(facts_.features.end(), {"bfloat16", "tf32"});
  facts_.features.push_back("sm_" + std::to_string(gpu_->properties.major) +
                            std::to_string(gpu_->properties.minor));
  kernels_ = cuda::cuda_kernels(gpu_);
}

CheckGpu::~CheckGpu() {
  operands_.reset();
  (void)runtime().destroy_stream(stream_);
}

void CheckGpu::check(cudaError_t error, const char* what) { check_call(runtime(), error, what); }

void CheckGpu::synchronize() {
  const std::string failure = gpu_->take_failure();
  check(runtime().synchronize(stream_), "waiting for the kernel");
  if (!failure.empty()) throw std::runtime_error(failure);
}

testing::RunOptions CheckGpu::run_options() {
  testing::RunOptions options;
  options.facts = &facts_;
  options.queue = stream_;
  options.memory = operands_.get();
  options.finish = [this] { synchronize(); };
  return options;
}

bool CheckGpu::takes(const Kernel& kernel, const Graph& graph, std::string* why) const {
  if (kernel.op != graph.nodes[0].op->name) return false;
  if (!kernel.refuse) return true;
  const auto reason = kernel.refuse(testing::plain_request(graph, graph.nodes[0], facts_));
  if (reason && why != nullptr) *why = *reason;
  return !reason;
}

}  // namespace tandem::gpu_check
