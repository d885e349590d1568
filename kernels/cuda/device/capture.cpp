#include "kernels/cuda/device/capture.h"

#include <algorithm>
#include <utility>

namespace tandem::cuda {

GraphContexts::GraphContexts(std::shared_ptr<DeviceShared> device) : device_(std::move(device)) {
  device_->check(device_->runtime->allocate(memory_, most * StepContexts::block_bytes),
                 "taking memory for step contexts");
}

GraphContexts::~GraphContexts() {
  (void)device_->runtime->set_gpu(device_->options.ordinal);
  (void)device_->runtime->release(memory_);
}

const StepContext* GraphContexts::block_of(const StepContext& context) {
  for (std::size_t i = 0; i < count_; ++i) {
    if (entries_[i].host == &context) return entries_[i].block.as_argument();
  }
  if (count_ == most) return nullptr;
  Entry& entry = entries_[count_];
  entry.host = &context;
  entry.block.address = static_cast<std::byte*>(memory_) + count_ * StepContexts::block_bytes;
  ++count_;
  return entry.block.as_argument();
}

void GraphContexts::renew(StepContexts& of_stream) {
  for (std::size_t i = 0; i < count_; ++i) of_stream.renew(entries_[i].block, *entries_[i].host);
}

Capture::Capture(std::shared_ptr<DeviceShared> device, CudaStream& origin)
    : CaptureOrder(origin),
      contexts(std::make_unique<GraphContexts>(device)),
      device_(std::move(device)) {}

void Capture::add(int branch, const Operation& declared, std::size_t bytes) {
  step(branch);
  if (!device_->checks_order()) return;
  CapturedOperation& operation = operations_.emplace_back();
  operation.branch = branch;
  operation.name = declared.name;
  operation.seconds = declared.seconds;
  operation.bytes = bytes;
  operation.accesses.assign(declared.accesses.begin(), declared.accesses.end());
}

int Capture::add_record(int branch) {
  const int number = record(branch);
  add_event(CapturedOperation::Kind::record, branch, number);
  return number;
}

void Capture::add_wait(int branch, int record) {
  wait(branch, record);
  add_event(CapturedOperation::Kind::wait, branch, record);
}

void Capture::add_event(CapturedOperation::Kind kind, int branch, int record) {
  if (!device_->checks_order()) return;
  CapturedOperation& operation = operations_.emplace_back();
  operation.kind = kind;
  operation.branch = branch;
  operation.record = record;
}

CudaCaptured::CudaCaptured(std::shared_ptr<DeviceShared> device, Capture& capture,
                           cudaGraphExec_t graph)
    : device_(std::move(device)),
      origin_(capture.origin()),
      graph_(graph),
      contexts_(std::move(capture.contexts)),
      copied_(capture.copied),
      operations_(std::move(capture.operations_)) {
  if (!device_->checks_order()) return;
  LaneMonitor* monitor = device_->monitor();
  for (const Capture::Branch& branch : capture.branches_) {
    const CudaStream& stream = *branch.stream;
    // Only the graph orders what a fork does, not the stream that it borrows.
    lanes_.push_back(lanes_.empty()
                         ? stream.lane()
                         : monitor->add_lane(stream.name() + ".captured", stream.lane()));
  }
  for (std::size_t i = 0; i < capture.records_.size(); ++i) events_.push_back(monitor->add_event());
}

CudaCaptured::~CudaCaptured() {
  (void)device_->runtime->set_gpu(device_->options.ordinal);
  (void)device_->runtime->synchronize(origin_.handle());
  (void)device_->runtime->destroy_graph(graph_);
  LaneMonitor* monitor = device_->monitor();
  if (lanes_.empty()) return;
  for (std::size_t b = 1; b < lanes_.size(); ++b) monitor->remove_lane(lanes_[b]);
  for (const int event : events_) monitor->remove_event(event);
}

void CudaCaptured::tell(LaneMonitor& monitor) {
  monitor.join(lanes_[0], LaneMonitor::host_lane);
  for (std::size_t b = 1; b < lanes_.size(); ++b) monitor.join(lanes_[b], lanes_[0]);
  for (const CapturedOperation& operation : operations_) {
    const int lane = lanes_[operation.branch];
    switch (operation.kind) {
      case CapturedOperation::Kind::record:
        monitor.record(lane, events_[operation.record], launches_);
        break;
      case CapturedOperation::Kind::wait:
        monitor.wait(lane, events_[operation.record], launches_);
        break;
      case CapturedOperation::Kind::operation:
        monitor.operation(lane, {operation.name, operation.seconds, operation.accesses},
                          operation.bytes);
        break;
    }
  }
}

void CudaCaptured::launch(CudaStream& stream) {
  if (&stream != &origin_)
    broken_rule(stream.name(), "what was captured on one stream is launched on another");
  ++launches_;
  device_->choose();
  contexts_->renew(*stream.contexts_);
  if (device_->checks_order()) tell(*device_->monitor());
  device_->copies += copied_.copies;
  device_->bytes_to_device += copied_.to_device;
  device_->bytes_to_host += copied_.to_host;
  device_->check(device_->runtime->launch_graph(graph_, stream.handle()), "launching a graph",
                 stream.name());
}

}  // namespace tandem::cuda
