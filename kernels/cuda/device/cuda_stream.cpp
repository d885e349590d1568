#include "kernels/cuda/device/cuda_stream.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/device/capture.h"

namespace tandem::cuda {
namespace {

constexpr std::size_t most_name = 255;

}  // namespace

CudaStream::CudaStream(std::shared_ptr<DeviceShared> device, const std::string& name)
    : device_(std::move(device)), name_(name) {
  device_->refuse_in_capture("the host makes a stream");
  device_->choose();
  device_->check(device_->runtime->make_stream(stream_), "making a stream");
  contexts_ = std::make_unique<StepContexts>(*device_, stream_);
  times_ = std::make_unique<SpanTimes>(*device_, stream_);
  last_.reserve(most_name);
  if (device_->monitor() != nullptr) lane_ = device_->monitor()->add_lane(name);
  const std::lock_guard lock(device_->streams_mutex);
  device_->streams.push_back(this);
}

CudaStream::~CudaStream() {
  {
    const std::lock_guard lock(device_->streams_mutex);
    std::erase(device_->streams, this);
  }
  Runtime& runtime = *device_->runtime;
  (void)runtime.set_gpu(device_->options.ordinal);
  if (capture_ && &capture_->origin() == this) {
    cudaGraphExec_t graph = nullptr;
    const std::shared_ptr<Capture> capture = capture_;
    capture->end(*this);
    device_->capturing = std::thread::id();
    (void)runtime.end_capture(stream_, graph);
    if (graph != nullptr) (void)runtime.destroy_graph(graph);
    capture->contexts.reset();
  }
  if (runtime.synchronize(stream_) == cudaSuccess) device_->errors.forward();
  contexts_.reset();
  times_.reset();
  (void)runtime.destroy_stream(stream_);
  if (device_->monitor() != nullptr) device_->monitor()->remove_lane(lane_);
}

void CudaStream::break_rule(const std::string& text) {
  if (capture_ && capture_->broken.empty()) capture_->broken = text;
  broken_rule(name_, text);
}

// A GPU faults on a foreign address; the report to the monitor says which operation used it.
void CudaStream::check_addresses(const KernelCall& call) {
  const auto check = [&](const void* address, const char* what) {
    if (address == nullptr || device_->contains(address)) return;
    device_->monitor()->report(name_ + ": '" + std::string(call.operation.name) + "': " + what +
                               " is not in the memory of this device");
  };
  for (int i = 0; i < call.inputs; ++i) check(call.arguments.inputs[i], "an input");
  for (int i = 0; i < call.outputs; ++i) check(call.arguments.outputs[i], "an output");
  check(call.arguments.workspace, "the workspace");
}

TraceSpan* CudaStream::tell(const Operation& operation, std::size_t bytes) {
  LaneMonitor* const monitor = device_->monitor();
  if (monitor == nullptr) return nullptr;
  monitor->join(lane_, LaneMonitor::host_lane);
  return monitor->operation(lane_, operation, bytes);
}

void CudaStream::run(const KernelCall& call) {
  device_->choose(last_);
  if (device_->checks_order()) check_addresses(call);
  KernelArguments arguments = call.arguments;
  arguments.queue = stream_;
  last_ = call.operation.name.substr(0, most_name);
  TraceSpan* span = nullptr;
  if (capture_) {
    if (arguments.context != nullptr) {
      arguments.context = capture_->contexts->block_of(*arguments.context);
      if (arguments.context == nullptr)
        break_rule("a capture has kernels of too many step contexts");
    }
    capture_->add(branch_, call.operation);
  } else {
    if (arguments.context != nullptr) arguments.context = contexts_->current(*arguments.context);
    span = tell(call.operation, 0);
  }
  times_->begin(span);
  call.kernel->run(arguments);
  device_->check_kernel(call.operation.name);
  times_->end(span);
}

void CudaStream::copy(void* to, const void* from, std::size_t bytes, const Operation& operation) {
  device_->choose(last_);
  const bool to_gpu = device_->contains(to), from_gpu = device_->contains(from);
  last_ = operation.name.substr(0, most_name);
  const ByteAccess accesses[2] = {{from, bytes, false}, {to, bytes, true}};
  const Operation declared{operation.name,
                           to_gpu != from_gpu ? link_seconds(bytes) : operation.seconds, accesses};
  TraceSpan* span = nullptr;
  if (capture_) {
    capture_->add(branch_, declared, bytes);
    capture_->copied.add(to_gpu, from_gpu, bytes);
  } else {
    span = tell(declared, bytes);
    CopiedBytes copied;
    copied.add(to_gpu, from_gpu, bytes);
    device_->copies += copied.copies;
    device_->bytes_to_device += copied.to_device;
    device_->bytes_to_host += copied.to_host;
  }
  times_->begin(span);
  if (bytes > 0)
    device_->check(device_->runtime->copy(to, from, bytes, stream_), "a copy", operation.name);
  times_->end(span);
}

void CudaStream::record(Event& any, std::uint64_t count) {
  auto& event = dynamic_cast<CudaEvent&>(any);
  device_->choose(last_);
  if (capture_) {
    device_->check(device_->runtime->record(event.in_capture(), stream_), "recording an event",
                   last_);
    event.capture = capture_;
    event.captured_record = capture_->add_record(branch_);
    event.captured = true;
    return;
  }
  if (event.capture) {
    event.captured = false;
    event.capture.reset();
  }
  if (LaneMonitor* monitor = device_->monitor()) {
    monitor->join(lane_, LaneMonitor::host_lane);
    monitor->record(lane_, event.id(), count);
  }
  event.record(stream_, count);
}

void CudaStream::wait(Event& any, std::uint64_t count) {
  if (count == 0) return;
  auto* event = dynamic_cast<CudaEvent*>(&any);
  if (event != nullptr && event->capture) {
    if (event->capture->ended())
      break_rule("waits for an event that belongs to a capture that has ended");
    if (event->capture->origin().device_ != device_)
      break_rule("waits for an event of another device's capture");
    if (!capture_) {  // a fork
      branch_ = event->capture->add_branch(*this);
      capture_ = event->capture;
    }
  }
  if (capture_) {
    if (event == nullptr || event->capture != capture_)
      break_rule("waits in a capture for an event that was recorded outside of it");
    capture_->add_wait(branch_, event->captured_record);
    device_->choose(last_);
    device_->check(device_->runtime->wait(stream_, event->in_capture()), "waiting for an event",
                   last_);
    return;
  }
  LaneMonitor* const monitor = device_->monitor();
  if (event == nullptr) {  // the host's event
    any.synchronize(count);
    if (monitor != nullptr) monitor->wait(lane_, any.id(), count);
    return;
  }
  device_->choose(last_);
  // Where the record was not enqueued there is nothing to wait for; the monitor reports it.
  if (monitor != nullptr) monitor->wait(lane_, event->id(), count);
  event->wait(*device_, stream_, count);
}

void CudaStream::synchronize() {
  if (capture_) break_rule("the host waits while capturing");
  device_->refuse_in_capture("the host waits");
  device_->choose(last_);
  device_->check(device_->runtime->synchronize(stream_), "waiting for a stream", last_);
  if (device_->monitor() != nullptr) device_->monitor()->join(LaneMonitor::host_lane, lane_);
  times_->collect();
  device_->errors.forward();
}

void CudaStream::begin_capture() {
  if (capture_) break_rule("a capture begins within a capture");
  device_->choose(last_);
  std::thread::id nobody;
  if (device_->capturing.load() != nobody)
    break_rule("a capture begins while another one is under way on this device");
  contexts_->open();  // what a launch needs, and memory for the graph's own contexts
  auto capture = std::make_shared<Capture>(device_, *this);
  if (!device_->capturing.compare_exchange_strong(nobody, std::this_thread::get_id()))
    break_rule("a capture begins while another one is under way on this device");
  const cudaError_t error = device_->runtime->begin_capture(stream_);
  if (error != cudaSuccess) device_->capturing = std::thread::id();
  device_->check(error, "beginning a capture");
  capture_ = std::move(capture);
  branch_ = 0;
}

std::unique_ptr<Captured> CudaStream::end_capture() {
  if (!capture_) break_rule("a capture ends that never began");
  const std::shared_ptr<Capture> capture = capture_;
  const std::string wrong = capture->end(*this);
  device_->capturing = std::thread::id();
  device_->choose(last_);
  cudaGraphExec_t graph = nullptr;
  const cudaError_t error = device_->runtime->end_capture(capture->origin().stream_, graph);
  if (!wrong.empty()) {
    capture->contexts.reset();  // events may hold the capture for long
    if (graph != nullptr) (void)device_->runtime->destroy_graph(graph);
    broken_rule(name_, wrong);
  }
  if (error != cudaSuccess) capture->contexts.reset();
  device_->check(error, "ending a capture");
  return std::make_unique<CudaCaptured>(device_, *capture, graph);
}

void CudaStream::launch(Captured& captured) {
  if (capture_) break_rule("a captured graph is launched while capturing");
  static_cast<CudaCaptured&>(captured).launch(*this);
}

}  // namespace tandem::cuda
