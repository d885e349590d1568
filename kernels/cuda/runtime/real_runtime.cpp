// The CUDA runtime that is linked in.
#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/cuda/runtime/runtime.h"

namespace tandem::cuda {
namespace {

// CUDA also keeps a failed call as its last error, which nothing here asks for.
cudaError_t forgotten(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error;
}

class RealRuntime final : public Runtime {
 public:
  cudaError_t gpu_count(int& count) override {
    count = 0;
    return forgotten(cudaGetDeviceCount(&count));
  }
  cudaError_t driver_version(int& version) override {
    version = 0;
    return forgotten(cudaDriverGetVersion(&version));
  }
  cudaError_t properties(int gpu, GpuProperties& to) override {
    to = {};
    cudaDeviceProp found{};
    const cudaError_t error = forgotten(cudaGetDeviceProperties(&found, gpu));
    if (error != cudaSuccess) return error;
    to.name = found.name;
    to.major = found.major;
    to.minor = found.minor;
    to.multiprocessors = found.multiProcessorCount;
    to.memory_bytes = found.totalGlobalMem;
    to.shared_bytes = found.sharedMemPerBlockOptin;
    to.l2_bytes = static_cast<std::size_t>(std::max(found.l2CacheSize, 0));
    to.copy_engines = found.asyncEngineCount;
    return error;
  }
  cudaError_t set_gpu(int gpu) override { return forgotten(cudaSetDevice(gpu)); }
  cudaError_t free_bytes(std::size_t& free, std::size_t& total) override {
    free = total = 0;
    return forgotten(cudaMemGetInfo(&free, &total));
  }
  std::string error_text(cudaError_t error) override {
    return std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")";
  }

  cudaError_t allocate(void*& to, std::size_t bytes) override {
    to = nullptr;
    return forgotten(cudaMalloc(&to, bytes));
  }
  cudaError_t release(void* memory) override { return forgotten(cudaFree(memory)); }
  cudaError_t allocate_pinned(void*& to, std::size_t bytes) override {
    to = nullptr;
    return forgotten(cudaHostAlloc(&to, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
  }
  cudaError_t release_pinned(void* memory) override { return forgotten(cudaFreeHost(memory)); }
  cudaError_t pin(void* memory, std::size_t bytes) override {
    return forgotten(cudaHostRegister(memory, bytes, cudaHostRegisterPortable));
  }
  cudaError_t unpin(void* memory) override { return forgotten(cudaHostUnregister(memory)); }

  cudaError_t make_stream(cudaStream_t& to) override {
    to = nullptr;
    return forgotten(cudaStreamCreateWithFlags(&to, cudaStreamNonBlocking));
  }
  cudaError_t destroy_stream(cudaStream_t stream) override {
    return forgotten(cudaStreamDestroy(stream));
  }
  cudaError_t synchronize(cudaStream_t stream) override {
    return forgotten(cudaStreamSynchronize(stream));
  }
  cudaError_t synchronize_gpu() override { return forgotten(cudaDeviceSynchronize()); }
  cudaError_t make_event(cudaEvent_t& to) override {
    to = nullptr;
    return forgotten(cudaEventCreateWithFlags(&to, cudaEventDisableTiming | cudaEventBlockingSync));
  }
  cudaError_t destroy_event(cudaEvent_t event) override {
    return forgotten(cudaEventDestroy(event));
  }
  cudaError_t record(cudaEvent_t event, cudaStream_t stream) override {
    return forgotten(cudaEventRecord(event, stream));
  }
  cudaError_t wait(cudaStream_t stream, cudaEvent_t event) override {
    return forgotten(cudaStreamWaitEvent(stream, event, cudaEventWaitDefault));
  }
  cudaError_t synchronize(cudaEvent_t event) override {
    return forgotten(cudaEventSynchronize(event));
  }
  cudaError_t query(cudaEvent_t event) override { return forgotten(cudaEventQuery(event)); }
  cudaError_t make_timer(cudaEvent_t& to) override {
    to = nullptr;
    return forgotten(cudaEventCreateWithFlags(&to, cudaEventBlockingSync));
  }
  cudaError_t milliseconds(float& to, cudaEvent_t from, cudaEvent_t until) override {
    to = 0;
    return forgotten(cudaEventElapsedTime(&to, from, until));
  }

  cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) override {
    return forgotten(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
  }
  cudaError_t copy_now(void* to, const void* from, std::size_t bytes) override {
    // Not cudaMemcpy: that may return while the GPU is still being written, and only the default
    // stream would wait for it.
    const cudaError_t error =
        forgotten(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, cudaStreamPerThread));
    return error != cudaSuccess ? error : forgotten(cudaStreamSynchronize(cudaStreamPerThread));
  }
  cudaError_t fill(void* to, int byte, std::size_t bytes, cudaStream_t stream) override {
    return forgotten(cudaMemsetAsync(to, byte, bytes, stream));
  }
  cudaError_t launch(const Launch& launch, cudaStream_t stream) override {
    void* arguments[] = {const_cast<void*>(launch.body)};
    return forgotten(
        cudaLaunchKernel(launch.entry, dim3(launch.shape.blocks, launch.shape.blocks_y),
                         dim3(launch.shape.threads), arguments, launch.shape.shared_bytes, stream));
  }

  cudaError_t load_library(cudaLibrary_t& to, const void* code) override {
    to = nullptr;
    return forgotten(cudaLibraryLoadData(&to, code, nullptr, nullptr, 0, nullptr, nullptr, 0));
  }
  cudaError_t unload_library(cudaLibrary_t library) override {
    return forgotten(cudaLibraryUnload(library));
  }
  cudaError_t find_kernel(const void*& to, cudaLibrary_t library, const char* name) override {
    to = nullptr;
    cudaKernel_t kernel = nullptr;
    cudaError_t error = forgotten(cudaLibraryGetKernel(&kernel, library, name));
    if (error != cudaSuccess) return error;
    // Asked for its attributes, it is loaded now and not at its first launch.
    cudaFuncAttributes attributes{};
    error = forgotten(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)));
    if (error == cudaSuccess) to = reinterpret_cast<const void*>(kernel);
    return error;
  }

  cudaError_t begin_capture(cudaStream_t stream) override {
    return forgotten(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  }
  cudaError_t end_capture(cudaStream_t stream, cudaGraphExec_t& to) override {
    to = nullptr;
    cudaGraph_t graph = nullptr;
    cudaError_t error = forgotten(cudaStreamEndCapture(stream, &graph));
    if (error == cudaSuccess) error = forgotten(cudaGraphInstantiate(&to, graph, 0));
    if (graph != nullptr) (void)forgotten(cudaGraphDestroy(graph));
    return error;
  }
  cudaError_t launch_graph(cudaGraphExec_t graph, cudaStream_t stream) override {
    return forgotten(cudaGraphLaunch(graph, stream));
  }
  cudaError_t destroy_graph(cudaGraphExec_t graph) override {
    return forgotten(cudaGraphExecDestroy(graph));
  }
};

}  // namespace

std::shared_ptr<Runtime> make_real_runtime() { return std::make_shared<RealRuntime>(); }

}  // namespace tandem::cuda
