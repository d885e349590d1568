// A CUDA runtime without a GPU: memory is the host's, kernels run by `Launch::emulate`, and broken
// rules of CUDA are collected and returned as the error that a real runtime gives.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/cuda/runtime/runtime.h"
#include "kernels/emulated/order_checker.h"
#include "kernels/shared/block/block.h"
#include "tests/cuda/support/fake_memory.h"

namespace tandem::testing {

struct FakeRuntimeOptions {
  int gpus = 1;
  std::size_t memory_bytes = std::size_t{1} << 30;  // per GPU
  int driver_version = 13000;                       // 0: no driver
  cuda::GpuProperties properties = {};              // every GPU's; an H100's if no name is set
  /// Streams delay their work until somebody waits for it: if the host touches data too early or a
  /// stream lacks a wait, numbers are wrong.
  bool late = false;
  /// If the host touches GPU memory outside of kernels and copies, it gets a SIGSEGV.
  bool protect = true;
  /// Checks order with vector clocks over streams and events; see `declare`.
  bool check_order = true;
  /// Keeps `calls()`. Without this, `check_order` and `late`, calls outside of captures allocate
  /// nothing.
  bool log = true;
};

class FakeRuntime final : public cuda::Runtime {
 public:
  explicit FakeRuntime(FakeRuntimeOptions options = {});
  ~FakeRuntime() override;

  // Queries for tests.
  /// The broken rules so far, each once; also overwritten guards, use of released memory, accesses
  /// that nothing orders, and exceptions that ended an emulated kernel. Failures that a test has
  /// requested are not included.
  std::vector<std::string> problems();
  /// Memory, streams, events and graphs that were not released.
  std::vector<std::string> leaks();
  /// All calls in order, such as "launch add stream 1", "copy 64 bytes host to GPU stream 1",
  /// "record event 2 stream 1". Streams, events and graphs are numbered from 1.
  std::vector<std::string> calls() const;
  void clear_calls();
  std::size_t live_bytes(int gpu = 0) const;  // allocated on the GPU
  /// Copies between a GPU and memory that is not pinned; CUDA makes the host wait for them.
  int pageable_copies() const;

  // Settings for tests.
  /// The `nth` call from here (1: the next) named `call` ("launch", "allocate"; "": any) fails;
  /// with `sticky` so does every later call.
  void fail(std::string call, int nth, cudaError_t error, bool sticky = false);
  /// The next run of a kernel of that name breaks the GPU: its launch succeeds, later calls fail.
  void fail_kernel(std::string name, cudaError_t error = cudaErrorIllegalAddress);

  // For fakes of libraries and for the checks of order.
  /// Enqueues a library's work on a stream; it is treated like a kernel: captured or delayed, and
  /// run while the GPU's memory is accessible.
  cudaError_t enqueue(cudaStream_t stream, std::string_view name, std::function<void()> work);
  /// Sets what this thread's next launches touch, until its next declaration. Called by the monitor
  /// that `watch` returns.
  void declare(const Operation& operation);
  /// A monitor for devices over this runtime: passes everything on to `inner` (may be null), and
  /// the accesses of operations to `declare`.
  std::shared_ptr<LaneMonitor> watch(std::shared_ptr<OrderChecker> inner);
  /// Where the host can access that byte even if `protect` is set.
  std::byte* host_view(const void* address) const;
  /// Whether the calling thread is between begin_capture and end_capture.
  bool is_capturing() const;

  cudaError_t gpu_count(int& count) override;
  cudaError_t driver_version(int& version) override;
  cudaError_t properties(int gpu, cuda::GpuProperties& to) override;
  cudaError_t set_gpu(int gpu) override;
  cudaError_t free_bytes(std::size_t& free, std::size_t& total) override;
  std::string error_text(cudaError_t error) override;
  cudaError_t allocate(void*& to, std::size_t bytes) override;
  cudaError_t release(void* memory) override;
  cudaError_t allocate_pinned(void*& to, std::size_t bytes) override;
  cudaError_t release_pinned(void* memory) override;
  cudaError_t pin(void* memory, std::size_t bytes) override;
  cudaError_t unpin(void* memory) override;
  cudaError_t make_stream(cudaStream_t& to) override;
  cudaError_t destroy_stream(cudaStream_t stream) override;
  cudaError_t synchronize(cudaStream_t stream) override;
  cudaError_t synchronize_gpu() override;
  cudaError_t make_event(cudaEvent_t& to) override;
  cudaError_t destroy_event(cudaEvent_t event) override;
  cudaError_t record(cudaEvent_t event, cudaStream_t stream) override;
  cudaError_t wait(cudaStream_t stream, cudaEvent_t event) override;
  cudaError_t synchronize(cudaEvent_t event) override;
  cudaError_t query(cudaEvent_t event) override;
  cudaError_t make_timer(cudaEvent_t& to) override;
  cudaError_t milliseconds(float& to, cudaEvent_t from, cudaEvent_t until) override;
  cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) override;
  cudaError_t copy_now(void* to, const void* from, std::size_t bytes) override;
  cudaError_t fill(void* to, int byte, std::size_t bytes, cudaStream_t stream) override;
  cudaError_t launch(const cuda::Launch& launch, cudaStream_t stream) override;
  /// `code` is a text that ends with 0; it contains a kernel if it contains the kernel's name.
  cudaError_t load_library(cudaLibrary_t& to, const void* code) override;
  cudaError_t unload_library(cudaLibrary_t library) override;
  cudaError_t find_kernel(const void*& to, cudaLibrary_t library, const char* name) override;
  cudaError_t begin_capture(cudaStream_t stream) override;
  cudaError_t end_capture(cudaStream_t stream, cudaGraphExec_t& to) override;
  cudaError_t launch_graph(cudaGraphExec_t graph, cudaStream_t stream) override;
  cudaError_t destroy_graph(cudaGraphExec_t graph) override;

 private:
  struct Capture;
  struct FakeStream;
  struct Work;
  struct FakeEvent;
  struct FakeGraph;
  struct FakeLibrary;
  struct Failure {
    std::string call;
    int calls_left = 0;
    cudaError_t error = cudaSuccess;
    bool sticky = false;
  };
  struct OfThread {
    int gpu = 0;
    std::weak_ptr<Capture> capture;
    std::vector<ByteAccess> declared;  // the last declaration
    std::vector<ByteAccess> since;     // all that was declared since the last enqueued work
    bool is_fresh = false;             // no work was enqueued since the last declaration
  };

  template <class Text>
  cudaError_t enter(const char* call, const Text& text);
  void add_problem(const std::string& text);  // unless it is in the list
  /// Adds the problem and marks the calling thread's capture as broken.
  cudaError_t broken(cudaError_t error, const std::string& text);
  cudaError_t refuse_in_capture(const char* what);
  OfThread& thread();
  cudaError_t find(cudaStream_t handle, std::string_view call, std::shared_ptr<FakeStream>& to,
                   bool on_own_gpu);
  cudaError_t find(cudaEvent_t handle, std::string_view call, FakeEvent*& to);
  struct Place {
    bool pageable = false;
    int gpu = -1;  // -1: the host
  };
  cudaError_t find(const void* address, std::size_t bytes, std::string_view call, Place& to);
  static const char* side(const Place& place);

  /// Checks the order of the operation, then runs it, delays it or adds it to the capture.
  cudaError_t add(const std::shared_ptr<FakeStream>& stream, std::string_view name, Work& work,
                  std::span<const ByteAccess> accesses);
  cudaError_t add_kernel(cudaStream_t handle, const char* call, std::string_view name, Work& work);
  void execute(FakeStream& stream, const Work& work);
  void run_until(FakeStream& stream, std::uint64_t number);
  void run_all();
  void host_waits_for(FakeStream& stream);
  bool has_happened(FakeEvent& event);

  FakeRuntimeOptions options_;
  mutable std::recursive_mutex mutex_;
  std::map<std::thread::id, OfThread> threads_;
  std::vector<std::unique_ptr<GpuMemory>> gpus_;
  PinnedMemory pinned_;
  std::map<std::uintptr_t, std::size_t> registered_;  // host memory by `pin`: address → bytes
  std::map<cudaStream_t, std::shared_ptr<FakeStream>> streams_;
  std::map<cudaEvent_t, std::unique_ptr<FakeEvent>> events_;
  std::map<cudaGraphExec_t, std::shared_ptr<FakeGraph>> graphs_;
  std::map<cudaLibrary_t, std::unique_ptr<FakeLibrary>> libraries_;
  int streams_made_ = 0, events_made_ = 0, graphs_made_ = 0, pageable_copies_ = 0;
  std::vector<std::string> calls_, problems_;
  std::vector<Failure> failures_;
  std::map<std::string, cudaError_t, std::less<>> failing_kernels_;
  cudaError_t sticky_ = cudaSuccess;
  std::unique_ptr<OrderChecker> order_;  // null: order is not checked
};

/// A launch of a body as block.h describes it, in files that nvcc does not compile: runs on the
/// host only.
template <class Body>
cuda::Launch host_launch(const char* name, const cuda::LaunchShape& shape, const Body& body) {
  cuda::Launch launch;
  launch.name = name;
  launch.emulate = &cuda::emulate_on_host<Body>;
  launch.body = &body;
  launch.body_bytes = sizeof(Body);
  launch.shape = shape;
  return launch;
}

}  // namespace tandem::testing
