// A CUDA runtime without a GPU: memory is the host's, kernels run by `Launch::emulate`, and what
// breaks a rule of CUDA is collected and returned as the error that a GPU's runtime gives.
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

#include "kernels/cuda/block/block.h"
#include "kernels/cuda/runtime/runtime.h"
#include "kernels/emulated/order_checker.h"
#include "tests/cuda/support/fake_memory.h"

namespace tandem::testing {

struct FakeRuntimeOptions {
  int gpus = 1;
  std::size_t memory_bytes = std::size_t{1} << 30;  // of each GPU
  int driver_version = 13000;                       // 0: no driver
  cuda::GpuProperties properties = {};              // of every GPU; an H100's where no name is set
  /// Streams put off their work until somebody waits for it: what a host touches too early, or a
  /// stream does not wait for, shows as wrong numbers.
  bool late = false;
  /// A byte of a GPU's memory that the host touches outside of kernels and copies is a SIGSEGV.
  bool protect = true;
  /// Vector clocks over streams and events; see `declare`.
  bool check_order = true;
  /// `calls()` is kept. Without it and `check_order`, and not `late`, calls outside of captures
  /// allocate nothing.
  bool log = true;
};

class FakeRuntime final : public cuda::Runtime {
 public:
  explicit FakeRuntime(FakeRuntimeOptions options = {});
  ~FakeRuntime() override;

  // What tests ask.
  /// What broke a rule so far, each once: also overwritten guards, use of released memory, accesses
  /// that nothing orders, and what ended an emulated kernel. Failures that a test has ordered are
  /// none.
  std::vector<std::string> problems();
  /// Memory, streams, events and graphs that nobody has given back.
  std::vector<std::string> leaks();
  /// All calls in order, such as "launch add stream 1", "copy 64 bytes host to GPU stream 1",
  /// "record event 2 stream 1". Streams, events and graphs have numbers from 1.
  std::vector<std::string> calls() const;
  void clear_calls();
  std::size_t live_bytes(int gpu = 0) const;  // allocated on the GPU
  /// Copies between a GPU and memory that is not pinned; CUDA makes the host wait for them.
  int pageable_copies() const;

  // What tests order.
  /// The `nth` call from now (1: the next) named `call` ("launch", "allocate"; "" any) fails; where
  /// `sticky`, so does every later call.
  void fail(std::string call, int nth, cudaError_t error, bool sticky = false);
  /// The next run of a kernel of that name breaks the GPU: its launch succeeds, later calls fail.
  void fail_kernel(std::string name, cudaError_t error = cudaErrorIllegalAddress);

  // For fakes of libraries and for the checks of order.
  /// Work of a library on a stream, as a kernel's: captured, put off, run on open memory.
  cudaError_t enqueue(cudaStream_t stream, std::string_view name, std::function<void()> work);
  /// What the launches that this thread makes next touch, until its next declaration. Called by
  /// the monitor that `watch` returns.
  void declare(const Operation& operation);
  /// A monitor for devices over this runtime: tells `inner` (may be null) all that it hears, and
  /// `declare` the accesses of operations.
  std::shared_ptr<LaneMonitor> watch(std::shared_ptr<OrderChecker> inner);
  /// The same byte for the host: GPU memory that `protect` does not close.
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
  /// `code` is a text that ends with 0; a kernel is found where its name stands in it.
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
    std::vector<ByteAccess> declared;  // last
    std::vector<ByteAccess> since;     // all that was declared since something was enqueued
    bool is_fresh = false;             // nothing was enqueued since the last declaration
  };

  template <class Text>
  cudaError_t enter(const char* call, const Text& text);
  void add_problem(const std::string& text);  // once
  /// Notes the problem, and that the calling thread's capture is broken.
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

  /// Checks the order of the operation, then runs it, puts it off or adds it to the capture.
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
  std::map<std::uintptr_t, std::size_t> registered_;  // of the host, by `pin`; bytes
  std::map<cudaStream_t, std::shared_ptr<FakeStream>> streams_;
  std::map<cudaEvent_t, std::unique_ptr<FakeEvent>> events_;
  std::map<cudaGraphExec_t, std::shared_ptr<FakeGraph>> graphs_;
  std::map<cudaLibrary_t, std::unique_ptr<FakeLibrary>> libraries_;
  int streams_made_ = 0, events_made_ = 0, graphs_made_ = 0, pageable_copies_ = 0;
  std::vector<std::string> calls_, problems_;
  std::vector<Failure> failures_;
  std::map<std::string, cudaError_t, std::less<>> failing_kernels_;
  cudaError_t sticky_ = cudaSuccess;
  std::unique_ptr<OrderChecker> order_;  // null: not checked
};

/// A launch of a body as block.h describes it, for the host alone: in files without nvcc.
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
