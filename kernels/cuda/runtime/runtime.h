// The calls of the CUDA runtime that Tandem makes, as an interface: the real one, and in tests one
// that runs everything on the host and checks the rules.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>

#include "kernels/shared/block/launch.h"

namespace tandem::cuda {

struct GpuProperties {
  std::string name;
  int major = 0, minor = 0;
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::size_t shared_bytes = 0;  // the most for a block that opts in
  std::size_t l2_bytes = 0;
  int copy_engines = 0;
};

/// All calls act on the GPU that `set_gpu` has chosen for the calling thread. What a call returns
/// is its error; text by `error_text`.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual cudaError_t gpu_count(int& count) = 0;
  virtual cudaError_t driver_version(int& version) = 0;  // 13000; 0: no driver
  virtual cudaError_t properties(int gpu, GpuProperties& to) = 0;
  virtual cudaError_t set_gpu(int gpu) = 0;
  virtual cudaError_t free_bytes(std::size_t& free, std::size_t& total) = 0;
  virtual std::string error_text(
      cudaError_t error) = 0;  // "out of memory (cudaErrorMemoryAllocation)"

  virtual cudaError_t allocate(void*& to, std::size_t bytes) = 0;  // 256-byte aligned
  virtual cudaError_t release(void* memory) = 0;
  virtual cudaError_t allocate_pinned(void*& to, std::size_t bytes) = 0;  // mapped: GPUs may write
  virtual cudaError_t release_pinned(void* memory) = 0;
  /// Memory of the host that is there already, for all GPUs; its first address gives it back.
  virtual cudaError_t pin(void* memory, std::size_t bytes) = 0;
  virtual cudaError_t unpin(void* memory) = 0;

  virtual cudaError_t make_stream(cudaStream_t& to) = 0;  // non-blocking
  virtual cudaError_t destroy_stream(cudaStream_t stream) = 0;
  virtual cudaError_t synchronize(cudaStream_t stream) = 0;
  virtual cudaError_t synchronize_gpu() = 0;
  virtual cudaError_t make_event(cudaEvent_t& to) = 0;  // no timing, blocking synchronisation
  virtual cudaError_t destroy_event(cudaEvent_t event) = 0;
  virtual cudaError_t record(cudaEvent_t event, cudaStream_t stream) = 0;
  virtual cudaError_t wait(cudaStream_t stream, cudaEvent_t event) = 0;
  virtual cudaError_t synchronize(cudaEvent_t event) = 0;
  virtual cudaError_t query(cudaEvent_t event) = 0;     // cudaSuccess or cudaErrorNotReady
  virtual cudaError_t make_timer(cudaEvent_t& to) = 0;  // an event that knows its time
  /// Between the last records of two timers, which have been reached.
  virtual cudaError_t milliseconds(float& to, cudaEvent_t from, cudaEvent_t until) = 0;

  /// The direction follows from the addresses. Host memory should be pinned.
  virtual cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) = 0;
  virtual cudaError_t copy_now(void* to, const void* from, std::size_t bytes) = 0;
  virtual cudaError_t fill(void* to, int byte, std::size_t bytes, cudaStream_t stream) = 0;
  virtual cudaError_t launch(const Launch& launch, cudaStream_t stream) = 0;

  /// A cubin that was compiled at run time; `code` may go after the call.
  virtual cudaError_t load_library(cudaLibrary_t& to, const void* code) = 0;
  virtual cudaError_t unload_library(cudaLibrary_t library) = 0;
  /// Its kernel of that name, brought onto the GPU: a `Launch::entry`.
  virtual cudaError_t find_kernel(const void*& to, cudaLibrary_t library, const char* name) = 0;

  /// Thread-local mode: other threads may go on as they like.
  virtual cudaError_t begin_capture(cudaStream_t stream) = 0;
  virtual cudaError_t end_capture(cudaStream_t stream, cudaGraphExec_t& to) = 0;
  virtual cudaError_t launch_graph(cudaGraphExec_t graph, cudaStream_t stream) = 0;
  virtual cudaError_t destroy_graph(cudaGraphExec_t graph) = 0;
};

/// The CUDA runtime that is linked into the program. Starts without a driver, too: its calls then
/// say so.
std::shared_ptr<Runtime> make_real_runtime();

}  // namespace tandem::cuda
