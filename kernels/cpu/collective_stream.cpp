#include "kernels/cpu/collective_stream.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "engine/device/counted_event.h"
#include "engine/ranks/prompt_thread.h"
#include "kernels/cpu/operation_queue.h"

namespace tandem {
namespace {

class CollectiveStream final : public Stream {
 public:
  CollectiveStream(std::shared_ptr<LaneMonitor> monitor, const std::string& name,
                   std::function<void(const std::function<void()>&)> on_thread)
      : monitor_(std::move(monitor)) {
    if (monitor_) lane_ = monitor_->add_lane(name);
    thread_ =
        std::thread([this, on_thread = std::move(on_thread)] { on_thread([this] { work(); }); });
    started_.wait(false);  // what a thread allocates when it starts is no part of a step
  }
  ~CollectiveStream() override {
    queue_.close();
    thread_.join();  // after all that was enqueued
    if (monitor_) monitor_->remove_lane(lane_);
  }

  void run(const KernelCall& call) override {
    pointers_.clear();
    for (int i = 0; i < call.inputs; ++i)
      pointers_.push_back(const_cast<void*>(call.arguments.inputs[i]));  // inputs are only read
    for (int i = 0; i < call.outputs; ++i) pointers_.push_back(call.arguments.outputs[i]);
    QueuedOperation queued;
    queued.kind = QueuedOperation::Kind::run;
    queued.kernel = call.kernel;
    queued.inputs = call.inputs;
    queued.workspace = call.arguments.workspace;
    if (call.arguments.context != nullptr) queued.context = *call.arguments.context;
    enqueue(queued, call.operation);
  }
  void copy(void* to, const void* from, std::size_t bytes, const Operation& operation) override {
    pointers_.clear();
    QueuedOperation queued;
    queued.kind = QueuedOperation::Kind::copy;
    queued.to = to;
    queued.from = from;
    queued.bytes = bytes;
    const ByteAccess accesses[2] = {{from, bytes, false}, {to, bytes, true}};
    enqueue(queued, {operation.name, operation.seconds, accesses});
  }
  void record(Event& any, std::uint64_t count) override {
    auto& event = static_cast<CountedEvent&>(any);
    if (monitor_) {
      monitor_->join(lane_, LaneMonitor::host_lane);
      monitor_->record(lane_, event.id(), count);
    }
    QueuedOperation queued;
    queued.kind = QueuedOperation::Kind::record;
    queued.event = &event;
    queued.count = count;
    event.enqueued = count;
    queue_.push(queued);
  }
  void wait(Event& event, std::uint64_t count) override {
    if (count == 0) return;
    // A record that another thread of the host makes later is in no queue yet.
    const auto* const counted = dynamic_cast<CountedEvent*>(&event);
    const bool is_awaited = counted != nullptr && counted->enqueued < count;
    if (is_awaited) event.synchronize(count);
    if (monitor_) monitor_->wait(lane_, event.id(), count);
    if (is_awaited) return;
    QueuedOperation queued;
    queued.kind = QueuedOperation::Kind::wait;
    queued.event = &event;
    queued.count = count;
    queue_.push(queued);
  }
  void synchronize() override {
    queue_.drain();
    if (monitor_) monitor_->join(LaneMonitor::host_lane, lane_);
  }
  int lane() const override { return lane_; }

 private:
  void enqueue(QueuedOperation& queued, const Operation& declared) {
    if (monitor_) {
      monitor_->join(lane_, LaneMonitor::host_lane);
      queued.trace = monitor_->operation(lane_, declared, queued.bytes);
    }
    queue_.push(queued, pointers_);
  }
  void work() {
    wake_promptly();
    started_ = true;
    started_.notify_all();
    while (QueuedOperation* operation = queue_.front()) {
      if (operation->trace != nullptr) operation->trace->real_start = monitor_->real_time();
      execute(*operation);
      if (operation->trace != nullptr) operation->trace->real_end = monitor_->real_time();
      queue_.pop();
    }
  }
  static void execute(QueuedOperation& operation) {
    switch (operation.kind) {
      case QueuedOperation::Kind::run:
        operation.kernel->run({operation.pointers, operation.pointers + operation.inputs,
                               operation.workspace, &operation.context});
        break;
      case QueuedOperation::Kind::copy:
        std::memmove(operation.to, operation.from, operation.bytes);
        break;
      case QueuedOperation::Kind::record:
        static_cast<CountedEvent*>(operation.event)->reach(operation.count);
        break;
      case QueuedOperation::Kind::wait:
        operation.event->synchronize(operation.count);
        break;
    }
  }

  const std::shared_ptr<LaneMonitor> monitor_;
  int lane_ = -1;
  OperationQueue queue_;
  std::vector<void*> pointers_;  // inputs and outputs of the last kernel
  std::atomic<bool> started_{false};
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Stream> make_collective_stream(
    std::shared_ptr<LaneMonitor> monitor, const std::string& name,
    std::function<void(const std::function<void()>&)> on_thread) {
  return std::make_unique<CollectiveStream>(std::move(monitor), name, std::move(on_thread));
}

}  // namespace tandem
