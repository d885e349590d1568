// The fake CUDA runtime: queries and settings for tests, GPUs, memory, copies, launches.
#include "tests/cuda/support/fake_runtime.h"

#include <algorithm>
#include <cstring>

#include "tests/cuda/support/fake_streams_and_graphs.h"

namespace tandem::testing {
namespace {

FakeRuntimeOptions completed(FakeRuntimeOptions options) {
  cuda::GpuProperties& gpu = options.properties;
  if (gpu.name.empty()) {
    gpu.name = "Fake GPU";
    gpu.major = 9;
    gpu.multiprocessors = 132;
    gpu.shared_bytes = 227 << 10;
    gpu.l2_bytes = std::size_t{50} << 20;
    gpu.copy_engines = 3;
  }
  gpu.memory_bytes = options.memory_bytes;
  return options;
}

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// Passes everything on to the inner monitor, and declares operations to the runtime.
class Watch final : public LaneMonitor {
 public:
  Watch(FakeRuntime& runtime, std::shared_ptr<OrderChecker> inner)
      : runtime_(runtime),
        inner_(inner ? std::move(inner) : std::make_shared<OrderChecker>(false)) {}

  bool keeps_trace() const override { return inner_->keeps_trace(); }
  int add_lane(std::string_view name, int time_of) override {
    return inner_->add_lane(name, time_of);
  }
  void remove_lane(int lane) override { inner_->remove_lane(lane); }
  int add_event() override { return inner_->add_event(); }
  void remove_event(int event) override { inner_->remove_event(event); }
  TraceSpan* operation(int lane, const Operation& operation, std::size_t bytes) override {
    runtime_.declare(operation);
    return inner_->operation(lane, operation, bytes);
  }
  void record(int lane, int event, std::uint64_t count) override {
    inner_->record(lane, event, count);
  }
  void wait(int lane, int event, std::uint64_t count) override { inner_->wait(lane, event, count); }
  void join(int lane, int earlier) override { inner_->join(lane, earlier); }
  void forget(const void* address, std::size_t bytes) override { inner_->forget(address, bytes); }
  void report(std::string_view text) override { inner_->report(text); }
  double virtual_time(int lane) const override {
    return static_cast<const LaneMonitor&>(*inner_).virtual_time(lane);
  }
  double real_time() const override { return inner_->real_time(); }

 private:
  FakeRuntime& runtime_;
  std::shared_ptr<OrderChecker> inner_;
};

}  // namespace

FakeRuntime::FakeRuntime(FakeRuntimeOptions options) : options_(completed(std::move(options))) {
  for (int gpu = 0; gpu < options_.gpus; ++gpu)
    gpus_.push_back(std::make_unique<GpuMemory>(options_.memory_bytes, options_.protect));
  if (options_.check_order) order_ = std::make_unique<OrderChecker>();
}

FakeRuntime::~FakeRuntime() = default;

std::vector<std::string> FakeRuntime::problems() {
  const std::lock_guard lock(mutex_);
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu)
    gpus_[gpu]->blocks.check("GPU " + std::to_string(gpu) + "'s", problems_);
  pinned_.blocks.check("pinned", problems_);
  std::vector<std::string> all = problems_;
  if (order_) {
    for (const std::string& error : order_->order_errors()) all.push_back(error);
  }
  return all;
}

std::vector<std::string> FakeRuntime::leaks() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  const auto add_blocks = [&](const BlockList& list, const std::string& whose) {
    for (const auto& [start, block] : list.blocks()) {
      if (!block.released)
        all.push_back(whose + " block of " + std::to_string(block.bytes) + " bytes");
    }
  };
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu)
    add_blocks(gpus_[gpu]->blocks, "GPU " + std::to_string(gpu) + "'s");
  add_blocks(pinned_.blocks, "pinned");
  for (const auto& [first, bytes] : registered_)
    all.push_back(std::to_string(bytes) + " bytes of the host that are still pinned");
  for (const auto& [handle, stream] : streams_) all.push_back(stream->name());
  for (const auto& [handle, event] : events_) all.push_back(event->name());
  for (const auto& [handle, graph] : graphs_) all.push_back(graph->name());
  all.insert(all.end(), libraries_.size(), "a library");
  return all;
}

std::vector<std::string> FakeRuntime::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

void FakeRuntime::clear_calls() {
  const std::lock_guard lock(mutex_);
  calls_.clear();
}

std::size_t FakeRuntime::live_bytes(int gpu) const {
  const std::lock_guard lock(mutex_);
  return gpus_[gpu]->blocks.live_bytes();
}

int FakeRuntime::pageable_copies() const {
  const std::lock_guard lock(mutex_);
  return pageable_copies_;
}

void FakeRuntime::fail(std::string call, int nth, cudaError_t error, bool sticky) {
  const std::lock_guard lock(mutex_);
  failures_.push_back({std::move(call), nth, error, sticky});
}

void FakeRuntime::fail_kernel(std::string name, cudaError_t error) {
  const std::lock_guard lock(mutex_);
  failing_kernels_[std::move(name)] = error;
}

void FakeRuntime::declare(const Operation& operation) {
  if (!order_) return;
  const std::lock_guard lock(mutex_);
  OfThread& own = thread();
  own.declared.clear();
  if (!own.is_fresh) own.since.clear();
  own.is_fresh = true;
  for (const ByteAccess& access : operation.accesses) {
    for (const auto& gpu : gpus_) {
      if (!gpu->contains(number_of(access.address))) continue;
      own.declared.push_back(access);
      own.since.push_back(access);
    }
  }
}

std::shared_ptr<LaneMonitor> FakeRuntime::watch(std::shared_ptr<OrderChecker> inner) {
  return std::make_shared<Watch>(*this, std::move(inner));
}

std::byte* FakeRuntime::host_view(const void* address) const {
  for (const auto& gpu : gpus_) {
    if (gpu->contains(number_of(address)))
      return static_cast<std::byte*>(gpu->host_view(number_of(address)));
  }
  return static_cast<std::byte*>(const_cast<void*>(address));
}

bool FakeRuntime::is_capturing() const {
  const std::lock_guard lock(mutex_);
  const auto own = threads_.find(std::this_thread::get_id());
  return own != threads_.end() && !own->second.capture.expired();
}

FakeRuntime::OfThread& FakeRuntime::thread() { return threads_[std::this_thread::get_id()]; }

void FakeRuntime::add_problem(const std::string& text) {
  if (std::find(problems_.begin(), problems_.end(), text) == problems_.end())
    problems_.push_back(text);
}

cudaError_t FakeRuntime::broken(cudaError_t error, const std::string& text) {
  add_problem(text);
  const std::shared_ptr<Capture> capture = thread().capture.lock();
  if (capture && capture->broken.empty()) capture->broken = text;
  return error;
}

cudaError_t FakeRuntime::refuse_in_capture(const char* what) {
  if (thread().capture.expired()) return cudaSuccess;
  return broken(cudaErrorStreamCaptureUnsupported, std::string(what) + " while capturing");
}

cudaError_t FakeRuntime::gpu_count(int& count) {
  const std::lock_guard lock(mutex_);
  count = 0;
  if (const cudaError_t error = enter("card_count", [] { return "card_count"; })) return error;
  count = options_.gpus;
  return cudaSuccess;
}

cudaError_t FakeRuntime::driver_version(int& version) {
  version = options_.driver_version;
  return cudaSuccess;
}

cudaError_t FakeRuntime::properties(int gpu, cuda::GpuProperties& to) {
  const std::lock_guard lock(mutex_);
  if (const cudaError_t error =
          enter("properties", [&] { return "properties of GPU " + std::to_string(gpu); }))
    return error;
  if (gpu < 0 || gpu >= options_.gpus) return cudaErrorInvalidDevice;
  to = options_.properties;
  return cudaSuccess;
}

cudaError_t FakeRuntime::set_gpu(int gpu) {
  const std::lock_guard lock(mutex_);
  OfThread& own = thread();
  if (gpu == own.gpu && gpu < options_.gpus && options_.driver_version != 0)
    return sticky_;  // called too often to be logged
  if (const cudaError_t error = enter("set_card", [&] { return "set_gpu " + std::to_string(gpu); }))
    return error;
  if (gpu < 0 || gpu >= options_.gpus)
    return broken(cudaErrorInvalidDevice, "there is no GPU " + std::to_string(gpu));
  own.gpu = gpu;
  return cudaSuccess;
}

cudaError_t FakeRuntime::free_bytes(std::size_t& free, std::size_t& total) {
  const std::lock_guard lock(mutex_);
  if (const cudaError_t error = enter("free_bytes", [] { return "free_bytes"; })) return error;
  const GpuMemory& memory = *gpus_[thread().gpu];
  total = memory.limit();
  free = total - memory.in_use();
  return cudaSuccess;
}

std::string FakeRuntime::error_text(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error (cudaSuccess)";
    case cudaErrorInvalidValue:
      return "invalid argument (cudaErrorInvalidValue)";
    case cudaErrorMemoryAllocation:
      return "out of memory (cudaErrorMemoryAllocation)";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version "
             "(cudaErrorInsufficientDriver)";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected (cudaErrorNoDevice)";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal (cudaErrorInvalidDevice)";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle (cudaErrorInvalidResourceHandle)";
    case cudaErrorIllegalState:
      return "the operation cannot be performed in the present state (cudaErrorIllegalState)";
    case cudaErrorNotReady:
      return "device not ready (cudaErrorNotReady)";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered (cudaErrorIllegalAddress)";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing (cudaErrorStreamCaptureUnsupported)";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture "
             "(cudaErrorStreamCaptureInvalidated)";
    default:
      return "CUDA error " + std::to_string(static_cast<int>(error));
  }
}

cudaError_t FakeRuntime::allocate(void*& to, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  to = nullptr;
  if (const cudaError_t error =
          enter("allocate", [&] { return "allocate " + std::to_string(bytes) + " bytes"; }))
    return error;
  if (const cudaError_t error = refuse_in_capture("the host allocates")) return error;
  if (bytes == 0) return cudaSuccess;  // a null pointer, as CUDA gives
  to = gpus_[thread().gpu]->allocate(bytes);
  if (to == nullptr) return cudaErrorMemoryAllocation;
  if (order_) order_->forget(to, bytes);
  return cudaSuccess;
}

cudaError_t FakeRuntime::release(void* memory) {
  const std::lock_guard lock(mutex_);
  if (const cudaError_t error = enter("release", [] { return "release"; })) return error;
  if (const cudaError_t error = refuse_in_capture("the host releases memory")) return error;
  if (memory == nullptr) return cudaSuccess;
  for (const auto& gpu : gpus_) {
    if (!gpu->contains(number_of(memory))) continue;
    const BlockList::Found found = gpu->blocks.find(number_of(memory));
    if (found.block == nullptr || found.start != number_of(memory))
      return broken(cudaErrorInvalidValue, "an address is released that no allocation gave");
    if (found.block->released)
      return broken(cudaErrorInvalidValue, "memory is released a second time");
    run_all();  // CUDA waits here too
    gpu->blocks.check("GPU's", problems_);
    gpu->release(found.start);
    return cudaSuccess;
  }
  return broken(cudaErrorInvalidValue, "memory is released that is no GPU's");
}

cudaError_t FakeRuntime::allocate_pinned(void*& to, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  to = nullptr;
  if (const cudaError_t error = enter(
          "allocate_pinned", [&] { return "allocate_pinned " + std::to_string(bytes) + " bytes"; }))
    return error;
  if (const cudaError_t error = refuse_in_capture("the host allocates")) return error;
  if (bytes == 0) return cudaSuccess;
  to = pinned_.allocate(bytes);
  if (to == nullptr) return cudaErrorMemoryAllocation;
  if (order_) order_->forget(to, bytes);
  return cudaSuccess;
}

cudaError_t FakeRuntime::release_pinned(void* memory) {
  const std::lock_guard lock(mutex_);
  if (const cudaError_t error = enter("release_pinned", [] { return "release_pinned"; }))
    return error;
  if (const cudaError_t error = refuse_in_capture("the host releases memory")) return error;
  if (memory == nullptr) return cudaSuccess;
  const BlockList::Found found = pinned_.blocks.find(number_of(memory));
  if (found.block == nullptr || found.start != number_of(memory))
    return broken(cudaErrorInvalidValue, "pinned memory is released that no allocation gave");
  if (found.block->released)
    return broken(cudaErrorInvalidValue, "pinned memory is released a second time");
  run_all();
  pinned_.blocks.check("pinned", problems_);
  pinned_.release(found.start);
  return cudaSuccess;
}

cudaError_t FakeRuntime::pin(void* memory, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const cudaError_t error =
          enter("pin", [&] { return "pin " + std::to_string(bytes) + " bytes"; }))
    return error;
  if (const cudaError_t error = refuse_in_capture("the host pins memory")) return error;
  const std::uintptr_t first = number_of(memory);
  if (first == 0 || bytes == 0) return broken(cudaErrorInvalidValue, "nothing is pinned");
  const auto next = registered_.lower_bound(first);
  const bool overlaps_next = next != registered_.end() && next->first < first + bytes;
  const bool overlaps_last =
      next != registered_.begin() && std::prev(next)->first + std::prev(next)->second > first;
  if (overlaps_next || overlaps_last) return cudaErrorHostMemoryAlreadyRegistered;
  registered_[first] = bytes;
  return cudaSuccess;
}

cudaError_t FakeRuntime::unpin(void* memory) {
  const std::lock_guard lock(mutex_);
  if (const cudaError_t error = enter("unpin", [] { return "unpin"; })) return error;
  if (const cudaError_t error = refuse_in_capture("the host unpins memory")) return error;
  run_all();
  if (registered_.erase(number_of(memory)) == 0)
    return broken(cudaErrorHostMemoryNotRegistered, "memory is unpinned that was not pinned");
  return cudaSuccess;
}

cudaError_t FakeRuntime::find(const void* address, std::size_t bytes, std::string_view call,
                              Place& to) {
  const auto at = number_of(address);
  const auto inside = [&](const BlockList& list, const char* whose) -> cudaError_t {
    const BlockList::Found found = list.find(at);
    std::string what;
    if (found.block == nullptr) {
      what = "outside of all blocks";
    } else if (found.block->released) {
      what = "that was released";
    } else if (at - found.start + bytes > found.block->bytes) {
      what = "past the end of a block of " + std::to_string(found.block->bytes) + " bytes";
    } else {
      return cudaSuccess;
    }
    return broken(cudaErrorInvalidValue, std::string(call) + " of " + whose + " memory " + what);
  };
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    if (!gpus_[gpu]->contains(at)) continue;
    to.gpu = static_cast<int>(gpu);
    return inside(gpus_[gpu]->blocks, "a GPU's");
  }
  if (pinned_.blocks.find(at).block != nullptr) return inside(pinned_.blocks, "pinned");
  auto range = registered_.upper_bound(at);
  if (range != registered_.begin() && at < (--range)->first + range->second) {
    if (at + bytes <= range->first + range->second) return cudaSuccess;
    return broken(cudaErrorInvalidValue,
                  std::string(call) + " of pinned memory past the end of what was pinned");
  }
  to.pageable = true;
  return cudaSuccess;
}

const char* FakeRuntime::side(const Place& place) {
  return place.gpu >= 0 ? "GPU" : place.pageable ? "pageable" : "host";
}

cudaError_t FakeRuntime::copy(void* to, const void* from, std::size_t bytes, cudaStream_t handle) {
  const std::lock_guard lock(mutex_);
  Place target, source;
  std::shared_ptr<FakeStream> stream;
  const cudaError_t wrong_stream = find(handle, "copy", stream, false);
  const cudaError_t wrong_to = find(to, bytes, "copy", target);
  const cudaError_t wrong_from = find(from, bytes, "copy", source);
  if (const cudaError_t error = enter("copy", [&] {
        return "copy " + std::to_string(bytes) + " bytes " + side(source) + " to " + side(target) +
               (stream ? " " + stream->name() : "");
      }))
    return error;
  for (const cudaError_t error : {wrong_stream, wrong_to, wrong_from}) {
    if (error != cudaSuccess) return error;
  }
  const bool pageable = target.pageable || source.pageable;
  if (pageable && stream->capture)
    return broken(cudaErrorStreamCaptureUnsupported, "a copy of pageable memory while capturing");
  if (pageable) ++pageable_copies_;
  Work work;
  work.kind = Work::Kind::copy;
  work.to = to;
  work.from = from;
  work.bytes = bytes;
  if (source.pageable &&
      (options_.late || !stream->pending.empty())) {  // CUDA has read it when the call returns
    auto staged = std::make_shared<std::vector<std::byte>>(bytes);
    std::memcpy(staged->data(), from, bytes);
    work.kind = Work::Kind::function;
    work.name = "copy";
    work.function = [this, staged, to] {
      std::memcpy(host_view(to), staged->data(), staged->size());
    };
  }
  ByteAccess accesses[2];
  std::size_t count = 0;
  if (!source.pageable) accesses[count++] = {from, bytes, false};
  if (!target.pageable) accesses[count++] = {to, bytes, true};
  const cudaError_t error = add(stream, "copy", work, {accesses, count});
  if (error == cudaSuccess && target.pageable) host_waits_for(*stream);
  return error;
}

cudaError_t FakeRuntime::copy_now(void* to, const void* from, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Place target, source;
  const cudaError_t wrong_to = find(to, bytes, "copy_now", target);
  const cudaError_t wrong_from = find(from, bytes, "copy_now", source);
  if (const cudaError_t error = enter("copy_now", [&] {
        return "copy_now " + std::to_string(bytes) + " bytes " + side(source) + " to " +
               side(target);
      }))
    return error;
  if (wrong_to != cudaSuccess) return wrong_to;
  if (wrong_from != cudaSuccess) return wrong_from;
  if (const cudaError_t error = refuse_in_capture("the host copies")) return error;
  // The copy does not wait for non-blocking streams: callers that need that must wait themselves.
  std::memmove(host_view(to), host_view(from), bytes);
  if (order_ && bytes > 0) {
    ByteAccess accesses[2];
    std::size_t count = 0;
    if (!source.pageable) accesses[count++] = {from, bytes, false};
    if (!target.pageable) accesses[count++] = {to, bytes, true};
    order_->operation(LaneMonitor::host_lane, {"copy_now", 0, {accesses, count}}, 0);
  }
  return cudaSuccess;
}

cudaError_t FakeRuntime::fill(void* to, int byte, std::size_t bytes, cudaStream_t handle) {
  const std::lock_guard lock(mutex_);
  Place target;
  std::shared_ptr<FakeStream> stream;
  const cudaError_t wrong_stream = find(handle, "fill", stream, true);
  const cudaError_t wrong_to = find(to, bytes, "fill", target);
  if (const cudaError_t error = enter("fill", [&] {
        return "fill " + std::to_string(bytes) + " bytes" + (stream ? " " + stream->name() : "");
      }))
    return error;
  if (wrong_stream != cudaSuccess) return wrong_stream;
  if (wrong_to != cudaSuccess) return wrong_to;
  if (target.pageable) return broken(cudaErrorInvalidValue, "a fill of pageable memory");
  Work work;
  work.kind = Work::Kind::fill;
  work.to = to;
  work.byte = byte;
  work.bytes = bytes;
  const ByteAccess access{to, bytes, true};
  return add(stream, "fill", work, {&access, 1});
}

cudaError_t FakeRuntime::load_library(cudaLibrary_t& to, const void* code) {
  const std::lock_guard lock(mutex_);
  to = nullptr;
  if (const cudaError_t error = enter("load_library", [] { return "load_library"; })) return error;
  if (const cudaError_t error = refuse_in_capture("a library is loaded")) return error;
  if (code == nullptr) return broken(cudaErrorInvalidValue, "a library is loaded without code");
  auto library = std::make_unique<FakeLibrary>();
  library->code = static_cast<const char*>(code);
  to = reinterpret_cast<cudaLibrary_t>(library.get());
  libraries_[to] = std::move(library);
  return cudaSuccess;
}

cudaError_t FakeRuntime::unload_library(cudaLibrary_t library) {
  const std::lock_guard lock(mutex_);
  if (const cudaError_t error = enter("unload_library", [] { return "unload_library"; }))
    return error;
  if (libraries_.erase(library) == 0)
    return broken(cudaErrorInvalidResourceHandle, "a library is unloaded that does not exist");
  return cudaSuccess;
}

cudaError_t FakeRuntime::find_kernel(const void*& to, cudaLibrary_t handle, const char* name) {
  const std::lock_guard lock(mutex_);
  to = nullptr;
  if (const cudaError_t error =
          enter("find_kernel", [&] { return "find_kernel " + std::string(name); }))
    return error;
  const auto library = libraries_.find(handle);
  if (library == libraries_.end())
    return broken(cudaErrorInvalidResourceHandle, "a kernel of a library that does not exist");
  if (library->second->code.find(name) == std::string::npos) return cudaErrorSymbolNotFound;
  std::unique_ptr<char>& kernel = library->second->kernels[name];
  if (!kernel) kernel = std::make_unique<char>();
  to = kernel.get();
  return cudaSuccess;
}

cudaError_t FakeRuntime::launch(const cuda::Launch& launch, cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  Work work;
  work.kind = Work::Kind::launch;
  work.launch = launch;
  return add_kernel(stream, "launch", launch.name, work);
}

cudaError_t FakeRuntime::enqueue(cudaStream_t stream, std::string_view name,
                                 std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  Work work;
  work.kind = Work::Kind::function;
  work.function = std::move(function);
  work.name = name;
  return add_kernel(stream, "enqueue", name, work);
}

cudaError_t FakeRuntime::add_kernel(cudaStream_t handle, const char* call, std::string_view name,
                                    Work& work) {
  std::shared_ptr<FakeStream> stream;
  const cudaError_t wrong_stream = find(handle, call, stream, true);
  if (const cudaError_t error = enter(call, [&] {
        return std::string(call) + " " + std::string(name) + (stream ? " " + stream->name() : "");
      }))
    return error;
  if (wrong_stream != cudaSuccess) return wrong_stream;
  if (work.kind == Work::Kind::launch) {
    const cuda::LaunchShape& shape = work.launch.shape;
    const bool fits = shape.blocks >= 1 && shape.blocks <= 0x7fffffffu && shape.blocks_y >= 1 &&
                      shape.blocks_y <= 65535 && shape.threads >= 1 && shape.threads <= 1024 &&
                      shape.shared_bytes <= (std::size_t{48} << 10);
    if (!fits) {
      return broken(cudaErrorInvalidConfiguration,
                    "kernel " + std::string(name) + " is launched on " +
                        std::to_string(shape.blocks) + " x " + std::to_string(shape.blocks_y) +
                        " blocks of " + std::to_string(shape.threads) + " threads with " +
                        std::to_string(shape.shared_bytes) + " shared bytes");
    }
    if (work.launch.emulate == nullptr || work.launch.body == nullptr ||
        work.launch.body_bytes == 0 || work.launch.body_bytes > 4096)
      return broken(cudaErrorInvalidDeviceFunction,
                    "kernel " + std::string(name) + " is no complete launch");
  }
  OfThread& own = thread();
  const std::span<const ByteAccess> accesses =
      stream->capture ? std::span<const ByteAccess>() : std::span<const ByteAccess>(own.declared);
  return add(stream, name, work, accesses);
}

}  // namespace tandem::testing
