#include "kernels/cpu/threads/waiting.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>

namespace tandem {
namespace {

constexpr std::int64_t between_readings_ns = 2'000'000;
constexpr std::int64_t stays_crowded_ns = 50'000'000;

// A thread that waited longer than this in `elapsed` shares its core with others. The loader of a
// training's data takes less; next to a busy loop a thread waits for whole time slices of
// milliseconds.
std::int64_t crowded_from(std::int64_t elapsed_ns) {
  return std::max<std::int64_t>(500'000, elapsed_ns / 8);
}

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));
  return ::syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

}  // namespace

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void sleep_while(std::atomic<std::uint32_t>& word, std::uint32_t expected) {
  futex(word, FUTEX_WAIT, expected);
}

void wake_all(std::atomic<std::uint32_t>& word) { futex(word, FUTEX_WAKE, 0x7fffffff); }

WaitingForCore::~WaitingForCore() {
  if (file_ >= 0) ::close(file_);
}

// The file's line: nanoseconds on a core, nanoseconds waiting for one, number of time slices.
std::int64_t WaitingForCore::read() const {
  char text[96];
  const ssize_t bytes = ::pread(file_, text, sizeof text, 0);
  const char* const end = text + std::max<ssize_t>(bytes, 0);
  const char* blank = std::find(static_cast<const char*>(text), end, ' ');
  std::int64_t waited = 0;
  if (blank != end) std::from_chars(blank + 1, end, waited);
  return waited;
}

std::int64_t WaitingForCore::report(SpinTime& time, std::int64_t now_ns) {
  if (file_ == -2) {
    file_ = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (file_ >= 0) waited_ = read();
    read_at_ = now_ns;
  }
  if (file_ < 0) return SpinTime::unknown_ns;
  const std::int64_t elapsed = now_ns - read_at_;
  if (elapsed >= between_readings_ns) {
    const std::int64_t waited = read();
    if (waited - waited_ > crowded_from(elapsed)) time.set_crowded(now_ns + stays_crowded_ns);
    waited_ = waited;
    read_at_ = now_ns;
  }
  return time.nanoseconds(now_ns);
}

}  // namespace tandem
