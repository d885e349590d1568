#include "kernels/emulated/emulated_stream.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/graph/error.h"
#include "kernels/emulated/capture.h"

namespace tandem {

using Direction = QueuedOperation::Direction;

void broken_rule(const std::string& device, const std::string& text) {
  throw Error(ErrorKind::runtime, Diagnostic{.message = device + ": " + text});
}

void EmulatedShared::refuse_in_capture(const char* what) const {
  if (capturing.load() == std::this_thread::get_id())
    broken_rule(options.name, std::string(what) + " while capturing");
}

void EmulatedEvent::synchronize(std::uint64_t count) {
  if (count == 0) return;
  if (captured.load())
    broken_rule(device_->options.name, "the host waits for an event that belongs to a capture");
  device_->refuse_in_capture("the host waits");
  block_until(count);
}

EmulatedStream::EmulatedStream(std::shared_ptr<EmulatedShared> device, const std::string& name)
    : device_(std::move(device)), name_(name), lane_(device_->monitor().add_lane(name)) {
  {
    const std::lock_guard lock(device_->mutex);
    device_->streams.push_back(this);
  }
  thread_ = std::thread([this] { device_->cpu->on_lane([this] { work(); }); });
  started_.wait(false);  // what a thread allocates when it starts is no part of a step
}

EmulatedStream::~EmulatedStream() {
  queue_.close();
  thread_.join();  // after all that was enqueued
  {
    const std::lock_guard lock(device_->mutex);
    std::erase(device_->streams, this);
  }
  device_->monitor().remove_lane(lane_);
}

void EmulatedStream::break_rule(const std::string& text) {
  if (capture_ && capture_->broken.empty()) capture_->broken = text;
  broken_rule(name_, text);
}

// A device that gets a foreign address faults; the emulated one first prints which operation used
// it.
void* EmulatedStream::kernel_pointer(const void* address, const Operation& operation,
                                     const char* what) const {
  if (address == nullptr) return nullptr;
  if (!device_->memory->contains(address)) {
    std::fprintf(stderr, "%s: '%.*s': %s %p is not in the memory of this device\n", name_.c_str(),
                 static_cast<int>(operation.name.size()), operation.name.data(), what, address);
    std::abort();
  }
  return device_->memory->kernel_view(address);
}

void EmulatedStream::run(const KernelCall& call) {
  pointers_.clear();
  for (int i = 0; i < call.inputs; ++i)
    pointers_.push_back(kernel_pointer(call.arguments.inputs[i], call.operation, "input"));
  for (int i = 0; i < call.outputs; ++i)
    pointers_.push_back(kernel_pointer(call.arguments.outputs[i], call.operation, "output"));
  QueuedOperation queued;
  queued.kind = QueuedOperation::Kind::run;
  queued.kernel = call.kernel;
  queued.inputs = call.inputs;
  queued.workspace = kernel_pointer(call.arguments.workspace, call.operation, "workspace");
  if (capture_)
    return capture_->add(branch_, queued, call.operation, pointers_, call.arguments.context);
  if (call.arguments.context != nullptr) queued.context = *call.arguments.context;
  enqueue(lane_, queued, call.operation, pointers_);
}

void EmulatedStream::copy(void* to, const void* from, std::size_t bytes,
                          const Operation& operation) {
  const AddressSpace& memory = *device_->memory;
  const bool to_here = memory.contains(to), from_here = memory.contains(from);
  QueuedOperation queued;
  queued.kind = QueuedOperation::Kind::copy;
  queued.to = to_here ? memory.kernel_view(to) : to;
  queued.from = from_here ? memory.kernel_view(from) : from;
  queued.bytes = bytes;
  const ByteAccess accesses[2] = {{from, bytes, false}, {to, bytes, true}};
  Operation declared{operation.name, operation.seconds, accesses};
  if (to_here != from_here) {
    const EmulatedOptions& link = device_->options;
    queued.direction = to_here ? Direction::to_device : Direction::to_host;
    declared.seconds = link.latency_seconds + static_cast<double>(bytes) / link.bytes_per_second;
    if (link.real_link) queued.seconds = declared.seconds;
  }
  if (capture_) return capture_->add(branch_, queued, declared, {}, nullptr);
  enqueue(lane_, queued, declared, {});
}

void EmulatedStream::enqueue(int lane, QueuedOperation& queued, const Operation& declared,
                             std::span<void* const> pointers) {
  LaneMonitor& monitor = device_->monitor();
  monitor.join(lane, LaneMonitor::host_lane);
  queued.trace = monitor.operation(lane, declared, queued.bytes);
  if (queued.direction != Direction::within) {
    device_->copies += 1;
    (queued.direction == Direction::to_device ? device_->bytes_to_device
                                              : device_->bytes_to_host) += queued.bytes;
  }
  queue_.push(queued, pointers);
}

void EmulatedStream::enqueue_record(int lane, CountedEvent& event, std::uint64_t count) {
  device_->monitor().join(lane, LaneMonitor::host_lane);
  device_->monitor().record(lane, event.id(), count);
  QueuedOperation queued;
  queued.kind = QueuedOperation::Kind::record;
  queued.event = &event;
  queued.count = count;
  queue_.push(queued);
}

void EmulatedStream::enqueue_wait(int lane, CountedEvent& event, std::uint64_t count) {
  device_->monitor().wait(lane, event.id(), count);
  QueuedOperation queued;
  queued.kind = QueuedOperation::Kind::wait;
  queued.event = &event;
  queued.count = count;
  queue_.push(queued);
}

void EmulatedStream::record(Event& any, std::uint64_t count) {
  auto& event = dynamic_cast<EmulatedEvent&>(any);
  if (capture_) {
    event.capture = capture_;
    event.captured_record = capture_->add_record(branch_);
    event.captured = true;
    return;
  }
  if (event.capture) {
    event.captured = false;
    event.capture.reset();
  }
  enqueue_record(lane_, event, count);
  event.enqueued = count;
}

void EmulatedStream::wait(Event& any, std::uint64_t count) {
  if (count == 0) return;
  auto* event = dynamic_cast<EmulatedEvent*>(&any);
  if (event != nullptr && event->capture) {
    if (event->capture->ended())
      break_rule("waits for an event that belongs to a capture that has ended");
    if (!capture_) {  // a fork
      branch_ = event->capture->add_branch(*this);
      capture_ = event->capture;
    }
  }
  if (capture_) {
    if (event == nullptr || event->capture != capture_)
      break_rule("waits in a capture for an event that was recorded outside of it");
    return capture_->add_wait(branch_, event->captured_record);
  }
  if (event == nullptr) {  // the host's event
    auto* const counted = dynamic_cast<CountedEvent*>(&any);
    if (counted != nullptr && counted->enqueued >= count && !counted->reached(count))
      return enqueue_wait(lane_, *counted, count);  // a queue that runs parallel to the caller
    any.synchronize(count);
    device_->monitor().wait(lane_, any.id(), count);
  } else if (event->enqueued < count) {  // as on CUDA, nothing to wait for; the monitor reports it
    device_->monitor().wait(lane_, event->id(), count);
  } else {
    enqueue_wait(lane_, *event, count);
  }
}

void EmulatedStream::synchronize() {
  if (capture_) break_rule("the host waits while capturing");
  device_->refuse_in_capture("the host waits");
  queue_.drain();
  device_->monitor().join(LaneMonitor::host_lane, lane_);
}

void EmulatedStream::work() {
  const LaneMonitor& monitor = device_->monitor();
  started_ = true;
  started_.notify_all();
  while (QueuedOperation* operation = queue_.front()) {
    if (operation->trace != nullptr) operation->trace->real_start = monitor.real_time();
    execute(*operation);
    if (operation->trace != nullptr) operation->trace->real_end = monitor.real_time();
    queue_.pop();
  }
}

void EmulatedStream::execute(QueuedOperation& operation) {
  switch (operation.kind) {
    case QueuedOperation::Kind::run: {
      KernelArguments arguments;
      arguments.inputs = operation.pointers;
      arguments.outputs = operation.pointers + operation.inputs;
      arguments.workspace = operation.workspace;
      arguments.context = &operation.context;
      operation.kernel->run(arguments);
      break;
    }
    case QueuedOperation::Kind::copy: {
      const auto start = std::chrono::steady_clock::now();
      std::memmove(operation.to, operation.from, operation.bytes);
      if (operation.seconds > 0)
        std::this_thread::sleep_until(start + std::chrono::duration<double>(operation.seconds));
      break;
    }
    case QueuedOperation::Kind::record:
      static_cast<CountedEvent*>(operation.event)->reach(operation.count);
      break;
    case QueuedOperation::Kind::wait:
      static_cast<CountedEvent*>(operation.event)->block_until(operation.count);
      break;
  }
}

}  // namespace tandem
