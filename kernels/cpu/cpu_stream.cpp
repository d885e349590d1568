#include "kernels/cpu/cpu_stream.h"

#include <cstring>

#include "engine/device/counted_event.h"

namespace tandem {
namespace {

class CpuStream final : public Stream {
 public:
  CpuStream(std::shared_ptr<LaneMonitor> monitor, const std::string& name)
      : monitor_(std::move(monitor)) {
    if (monitor_) lane_ = monitor_->add_lane(name);
  }
  ~CpuStream() override {
    if (monitor_) monitor_->remove_lane(lane_);
  }

  void run(const KernelCall& call) override {
    TraceSpan* span = begin(call.operation, 0);
    call.kernel->run(call.arguments);
    end(span);
  }
  void copy(void* to, const void* from, std::size_t bytes, const Operation& operation) override {
    const ByteAccess accesses[2] = {{from, bytes, false}, {to, bytes, true}};
    TraceSpan* span = begin({operation.name, operation.seconds, accesses}, bytes);
    std::memcpy(to, from, bytes);
    end(span);
  }
  void note(const Operation& operation) override { end(begin(operation, 0)); }
  void record(Event& event, std::uint64_t count) override {
    if (monitor_) monitor_->record(lane_, event.id(), count);
    static_cast<CountedEvent&>(event).reach(count);
  }
  void wait(Event& event, std::uint64_t count) override {
    event.synchronize(count);
    if (monitor_) monitor_->wait(lane_, event.id(), count);
  }
  void synchronize() override {
    if (monitor_) monitor_->join(LaneMonitor::host_lane, lane_);
  }
  int lane() const override { return lane_; }

 private:
  TraceSpan* begin(const Operation& operation, std::size_t bytes) {
    TraceSpan* span = monitor_ ? monitor_->operation(lane_, operation, bytes) : nullptr;
    if (span != nullptr) span->real_start = monitor_->real_time();
    return span;
  }
  void end(TraceSpan* span) {
    if (span != nullptr) span->real_end = monitor_->real_time();
  }

  std::shared_ptr<LaneMonitor> monitor_;
  int lane_ = -1;
};

}  // namespace

std::unique_ptr<Stream> make_cpu_stream(std::shared_ptr<LaneMonitor> monitor,
                                        const std::string& name) {
  return std::make_unique<CpuStream>(std::move(monitor), name);
}

std::unique_ptr<Event> make_cpu_event(std::shared_ptr<LaneMonitor> monitor) {
  return std::make_unique<CountedEvent>(std::move(monitor));
}

}  // namespace tandem
