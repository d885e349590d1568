#include "tools/interrupt.h"

#include <csignal>
#include <cstdint>
#include <ctime>
#include <string_view>

#include <sys/time.h>
#include <unistd.h>

#include "api/program/launched.h"
#include "tandem/tandem.h"
#include "tools/launch_note.h"

namespace tandem::tool {
namespace {

volatile std::sig_atomic_t received = 0, interrupts_waiting = 0, ends_unheard = 0, is_told = 0;
// Never freed, since signals come until the process ends.
const api::StopToken* volatile asked = nullptr;

// Batch systems signal both a launcher and its ranks, and one of them passes the signal on to the
// other.
constexpr std::int64_t together_ms = 500;
volatile std::int64_t received_at = 0;

std::int64_t milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

void write_to_stderr(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

/// Sends SIGALRM after this time, by a system call that Linux allows in signal handlers.
void wake_after(int milliseconds) {
  const itimerval once{
      .it_interval = {},
      .it_value = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000}};
  setitimer(ITIMER_REAL, &once, nullptr);
}

void on_signal(int signal) {
  if (received != 0) {
    if (signal == SIGHUP) return;  // both the kernel and the shell report a closed terminal
    if (milliseconds() - received_at < together_ms) return;
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  received = signal;
  received_at = milliseconds();
  if (asked != nullptr) asked->request_stop();
  wake_after(800);
}

/// A read that began after the signal, or continued after a part of its data, would wait as before,
/// so it is interrupted again.
void on_alarm(int) {
  if (ends_unheard != 0) {
    write_to_stderr("\ntandem: interrupted\n");
    _exit(128 + received);
  }
  if (is_told == 0)
    write_to_stderr(
        "\ntandem: interrupted: the current work is finished first; a second Ctrl-C or SIGTERM "
        "ends it at once, without saving\n");
  is_told = 1;
  if (interrupts_waiting != 0) wake_after(1000);
}

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
  is_told = api::launched().rank > 0 ? 1 : 0;  // only one rank prints the message
  interrupts_waiting = restarts ? 0 : 1;
  handle(SIGALRM, on_alarm, restarts);
  handle(SIGINT, on_signal, restarts);
  handle(SIGTERM, on_signal, restarts);
  handle(SIGUSR1, on_signal, restarts);  // mpirun passes it on and does not end its ranks
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) handle(SIGHUP, on_signal, restarts);
  note_signals_are_caught();
}

void when_unheard(Unheard how) { ends_unheard = how == Unheard::ends ? 1 : 0; }

int interrupted_by() { return received; }

}  // namespace tandem::tool
