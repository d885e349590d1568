#include "kernels/cuda/device/span_times.h"

namespace tandem::cuda {

SpanTimes::~SpanTimes() {
  for (const Timed& timed : timed_) {
    for (cudaEvent_t timer : {timed.from, timed.until}) {
      if (timer != nullptr) (void)device_.runtime->destroy_event(timer);
    }
  }
  if (base_ != nullptr) (void)device_.runtime->destroy_event(base_);
}

void SpanTimes::record(cudaEvent_t& timer) {
  if (timer == nullptr) device_.check(device_.runtime->make_timer(timer), "making a timer");
  device_.check(device_.runtime->record(timer, stream_), "recording a timer");
}

void SpanTimes::make_base() {
  if (base_ != nullptr) return;
  record(base_);
  device_.check(device_.runtime->synchronize(base_), "waiting for a timer");
  base_time_ = device_.monitor()->real_time();
}

void SpanTimes::begin(TraceSpan* span) {
  if (span == nullptr) return;
  make_base();
  if (count_ == timed_.size()) timed_.emplace_back();
  timed_[count_].span = span;
  record(timed_[count_].from);
}

void SpanTimes::end(TraceSpan* span) {
  if (span == nullptr) return;
  record(timed_[count_].until);
  ++count_;
}

void SpanTimes::collect() {
  for (std::size_t i = 0; i < count_; ++i) {
    const Timed& timed = timed_[i];
    float start = 0, end = 0;
    device_.check(device_.runtime->milliseconds(start, base_, timed.from), "reading a timer");
    device_.check(device_.runtime->milliseconds(end, base_, timed.until), "reading a timer");
    timed.span->real_start = base_time_ + static_cast<double>(start) * 1e-3;
    timed.span->real_end = base_time_ + static_cast<double>(end) * 1e-3;
  }
  count_ = 0;
}

}  // namespace tandem::cuda
