// Where a thread that loads data spends its time, by stage. Nothing is measured, and no clock is
// read, unless the thread has been asked to.
#pragma once

#include <array>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace tandem {

/// read: bytes from files; decode: pixels from packed bytes, and their size; transform: functions
/// of fields, and mixing; copy: rows into a batch, including the reading of mapped files that this
/// causes.
enum class LoadStage : std::uint8_t { read, decode, transform, copy };
inline constexpr std::array<std::string_view, 4> load_stages{"read", "decode", "transform", "copy"};

/// Seconds of each stage. Only one stage counts at a time: the innermost.
class StageClock {
 public:
  using Seconds = std::array<double, load_stages.size()>;

  /// Becomes the clock of the calling thread, which must have none; starts with `copy`.
  StageClock() {
    assert(of_thread() == nullptr);
    slot_of_thread() = this;
  }
  ~StageClock() { slot_of_thread() = nullptr; }
  StageClock(const StageClock&) = delete;
  StageClock& operator=(const StageClock&) = delete;

  /// Enters a stage; returns the one before.
  LoadStage enter(LoadStage stage) {
    const Clock::time_point now = Clock::now();
    seconds_[static_cast<std::size_t>(stage_)] +=
        std::chrono::duration<double>(now - since_).count();
    since_ = now;
    return std::exchange(stage_, stage);
  }
  const Seconds& seconds() {
    enter(stage_);
    return seconds_;
  }

  /// The clock of the calling thread; null: nothing is measured.
  static StageClock* of_thread() { return slot_of_thread(); }

 private:
  using Clock = std::chrono::steady_clock;

  static StageClock*& slot_of_thread() {
    thread_local StageClock* clock = nullptr;
    return clock;
  }

  Seconds seconds_{};
  LoadStage stage_ = LoadStage::copy;
  Clock::time_point since_ = Clock::now();
};

/// While it lives, time counts for one stage.
class InStage {
 public:
  explicit InStage(LoadStage stage) : clock_(StageClock::of_thread()) {
    if (clock_ != nullptr) before_ = clock_->enter(stage);
  }
  ~InStage() {
    if (clock_ != nullptr) clock_->enter(before_);
  }
  InStage(const InStage&) = delete;
  InStage& operator=(const InStage&) = delete;

 private:
  StageClock* clock_;
  LoadStage before_ = LoadStage::copy;
};

}  // namespace tandem
