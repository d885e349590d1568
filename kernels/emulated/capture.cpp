#include "kernels/emulated/capture.h"

#include <algorithm>
#include <utility>

namespace tandem {

void Capture::add(int branch, const QueuedOperation& queued, const Operation& declared,
                  const std::vector<void*>& pointers, const StepContext* context) {
  step(branch);
  operations_.push_back({branch,
                         queued,
                         context,
                         pointers,
                         -1,
                         std::string(declared.name),
                         declared.seconds,
                         {declared.accesses.begin(), declared.accesses.end()}});
}

int Capture::add_record(int branch) {
  CapturedOperation& operation = operations_.emplace_back();
  operation.branch = branch;
  operation.queued.kind = QueuedOperation::Kind::record;
  operation.event = record(branch);
  return operation.event;
}

void Capture::add_wait(int branch, int record) {
  wait(branch, record);
  CapturedOperation& operation = operations_.emplace_back();
  operation.branch = branch;
  operation.queued.kind = QueuedOperation::Kind::wait;
  operation.event = record;
}

EmulatedCaptured::EmulatedCaptured(std::shared_ptr<EmulatedShared> device, Capture& capture)
    : device_(std::move(device)), operations_(std::move(capture.operations_)) {
  for (const Capture::Branch& branch : capture.branches_) {
    EmulatedStream& stream = *branch.stream;
    // Only the graph orders what a fork does, not the stream that it borrows.
    const int lane = branches_.empty()
                         ? stream.lane()
                         : device_->monitor().add_lane(stream.name() + ".captured", stream.lane());
    branches_.push_back({&stream, lane});
  }
  for (std::size_t i = 0; i < capture.records_.size(); ++i)
    events_.push_back(std::make_unique<EmulatedEvent>(device_));
}

EmulatedCaptured::~EmulatedCaptured() {
  for (const Branch& branch : branches_) branch.stream->queue_.drain();  // rings know its events
  for (std::size_t b = 1; b < branches_.size(); ++b)
    device_->monitor().remove_lane(branches_[b].lane);
}

void EmulatedCaptured::launch(EmulatedStream& stream) {
  if (&stream != branches_[0].stream)
    broken_rule(stream.name(), "what was captured on one stream is launched on another");
  ++launches_;
  LaneMonitor& monitor = device_->monitor();
  monitor.join(stream.lane(), LaneMonitor::host_lane);
  for (std::size_t b = 1; b < branches_.size(); ++b) monitor.join(branches_[b].lane, stream.lane());
  for (const CapturedOperation& operation : operations_) {
    const Branch& branch = branches_[operation.branch];
    switch (operation.queued.kind) {
      case QueuedOperation::Kind::record:
        branch.stream->enqueue_record(branch.lane, *events_[operation.event], launches_);
        break;
      case QueuedOperation::Kind::wait:
        branch.stream->enqueue_wait(branch.lane, *events_[operation.event], launches_);
        break;
      default: {
        QueuedOperation queued = operation.queued;
        if (operation.context != nullptr) queued.context = *operation.context;
        branch.stream->enqueue(branch.lane, queued,
                               {operation.name, operation.seconds, operation.accesses},
                               operation.pointers);
      }
    }
  }
}

void EmulatedStream::begin_capture() {
  if (capture_) break_rule("a capture begins within a capture");
  std::thread::id nobody;
  if (!device_->capturing.compare_exchange_strong(nobody, std::this_thread::get_id()))
    break_rule("a capture begins while another one is under way on this device");
  capture_ = std::make_shared<Capture>(*this);
  branch_ = 0;
}

std::unique_ptr<Captured> EmulatedStream::end_capture() {
  if (!capture_) break_rule("a capture ends that never began");
  const std::shared_ptr<Capture> capture = capture_;
  const std::string wrong = capture->end(*this);
  device_->capturing = std::thread::id();
  if (!wrong.empty()) broken_rule(name_, wrong);
  return std::make_unique<EmulatedCaptured>(device_, *capture);
}

void EmulatedStream::launch(Captured& captured) {
  if (capture_) break_rule("a captured graph is launched while capturing");
  static_cast<EmulatedCaptured&>(captured).launch(*this);
}

}  // namespace tandem
