// Waits of a few microseconds between threads: spinning first, then sleeping in the kernel.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace tandem {

/// How long the threads of a team spin before they sleep: a short time while others use the cores.
/// Spinning for long on a core that others use costs twice: the time is lost, and the scheduler
/// takes it off the thread's next turns. The short time still covers most waits between two regions
/// of a step.
class SpinTime {
 public:
  static constexpr std::int64_t quiet_ns = 1'000'000;
  static constexpr std::int64_t crowded_ns = 70'000;
  /// Waits that end within this time do so without a pause of the processor, which takes up to 140
  /// cycles, and more on virtual machines that trap it.
  static constexpr std::int64_t without_pauses_ns = 50'000;
  static constexpr std::int64_t unknown_ns =
      100'000;  // where the system does not tell the waiting time

  /// The budget for waits of now.
  std::int64_t nanoseconds(std::int64_t now_ns) const {
    const bool is_short = is_resting_.load(std::memory_order_relaxed) ||
                          now_ns < crowded_until_.load(std::memory_order_relaxed);
    return is_short ? crowded_ns : quiet_ns;
  }
  void set_crowded(std::int64_t until_ns) {
    crowded_until_.store(until_ns, std::memory_order_relaxed);
  }
  /// Between two steps: other threads of the program are about to compute.
  void set_resting(bool is_resting) { is_resting_.store(is_resting, std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> crowded_until_{0};  // ns of the steady clock
  std::atomic<bool> is_resting_{false};
};

/// How long the scheduler lets one thread wait for a core although it could run (run_delay in
/// /proc/thread-self/schedstat). On a quiet machine it is a few microseconds in a second, next to a
/// busy loop half of the time.
class WaitingForCore {
 public:
  WaitingForCore() = default;
  ~WaitingForCore();
  WaitingForCore(const WaitingForCore&) = delete;
  WaitingForCore& operator=(const WaitingForCore&) = delete;

  /// To be called by always the same thread: reports to `time` whether the cores are crowded, and
  /// returns the current budget for waits. Reads the number at most every 2 ms; a reading takes 2
  /// µs.
  std::int64_t report(SpinTime& time, std::int64_t now_ns);

 private:
  std::int64_t read() const;

  int file_ = -2;  // -1: there is none; -2: not opened yet
  std::int64_t read_at_ = 0, waited_ = 0;
};

std::int64_t steady_ns();
/// Sleeps while `word` has the value `expected`, or until somebody wakes it; returns early at
/// times.
void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t expected);
void wake_all(std::atomic<std::uint32_t>& word);

/// Tells the processor that this is a spinning thread.
inline void spin_pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Spins until `is_ready()`, as long as `time` allows; whether it became ready.
template <class Ready>
bool spin_until(Ready&& is_ready, SpinTime& time, WaitingForCore& thread) {
  constexpr int looks = 32;  // between two readings of the clock
  for (int i = 0; i < looks; ++i) {
    if (is_ready()) return true;
  }
  const std::int64_t begin = steady_ns();
  std::int64_t most = 0;  // 0: not reported yet
  bool pauses = false;
  for (;;) {
    for (int i = 0; i < looks; ++i) {
      if (is_ready()) return true;
      if (pauses) spin_pause();
    }
    const std::int64_t now = steady_ns();
    pauses = now - begin >= SpinTime::without_pauses_ns;
    if (now - begin < SpinTime::crowded_ns) continue;
    if (most == 0) most = thread.report(time, now);
    // The step may end meanwhile, after which other threads of the program want the core.
    if (now - begin >= std::min(most, time.nanoseconds(now))) return false;
  }
}

}  // namespace tandem
