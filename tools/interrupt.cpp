#include "tools/interrupt.h"

#include <csignal>
#include <cstdint>
#include <ctime>

#include <unistd.h>

#include "tools/launch_note.h"

namespace tandem::tool {
namespace {

volatile std::sig_atomic_t received = 0, interrupts_waiting = 0;
const api::StopToken* volatile asked = nullptr;  // stays: signals come until the process ends

// Batch systems signal a launcher and its ranks, of which one passes it on to the other.
constexpr std::int64_t together_ms = 500;
volatile std::int64_t received_at = 0;

std::int64_t milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

void on_signal(int signal) {
  if (received != 0) {
    if (signal == SIGHUP) return;  // a closed terminal is told by the kernel and by the shell
    if (milliseconds() - received_at < together_ms) return;
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  received = signal;
  received_at = milliseconds();
  if (asked != nullptr) asked->request_stop();
  if (interrupts_waiting != 0) alarm(1);
}

/// A read that began after the signal, or went on behind a part of what it wanted, waits as before:
/// it is interrupted again.
void on_alarm(int) { alarm(1); }

void handle(int signal, void (*handler)(int), bool restarts) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  action.sa_flags = restarts ? SA_RESTART : 0;
  sigaction(signal, &action, nullptr);
}

}  // namespace

void catch_interrupts(const api::StopToken& stop, Waiting waiting) {
  const bool restarts = waiting == Waiting::goes_on;
  asked = new api::StopToken(stop);
  interrupts_waiting = restarts ? 0 : 1;
  if (!restarts) handle(SIGALRM, on_alarm, false);
  handle(SIGINT, on_signal, restarts);
  handle(SIGTERM, on_signal, restarts);
  handle(SIGUSR1, on_signal, restarts);  // mpirun passes it on and lets its ranks go on
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) handle(SIGHUP, on_signal, restarts);
  note_signals_are_caught();
}

int interrupted_by() { return received; }

}  // namespace tandem::tool
