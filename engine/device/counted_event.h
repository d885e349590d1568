// An event as a counter in host memory, which queues that are threads record and wait for.
#pragma once

#include <atomic>
#include <memory>

#include "engine/device/device.h"

namespace tandem {

class CountedEvent : public Event {
 public:
  /// `monitor` may be null.
  explicit CountedEvent(std::shared_ptr<LaneMonitor> monitor)
      : monitor_(std::move(monitor)), id_(monitor_ ? monitor_->add_event() : -1) {}
  ~CountedEvent() override {
    if (monitor_) monitor_->remove_event(id_);
  }

  void synchronize(std::uint64_t count) override { block_until(count); }
  bool reached(std::uint64_t count) const override {
    return count_.load(std::memory_order_acquire) >= count;
  }
  int id() const override { return id_; }

  void block_until(std::uint64_t count) const {
    for (std::uint64_t now = count_.load(std::memory_order_acquire); now < count;
         now = count_.load(std::memory_order_acquire))
      count_.wait(now, std::memory_order_acquire);
  }
  /// Called by the queue when it gets there, after it has notified the monitor.
  void reach(std::uint64_t count) {
    count_.store(count, std::memory_order_release);
    count_.notify_all();
  }

  /// The count of the last record that a queue with a thread of its own was given.
  std::atomic<std::uint64_t> enqueued{0};

 private:
  std::shared_ptr<LaneMonitor> monitor_;
  int id_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace tandem
