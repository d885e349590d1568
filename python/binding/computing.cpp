#include "python/binding/computing.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <list>
#include <mutex>
#include <thread>

#include "python/binding/binding.h"

namespace tandem::python {
namespace {

// The state of the process, as Python's own is.
std::atomic<pid_t> first_process{0};  // that computed; 0: none yet
std::atomic<bool> is_ending{false};
std::atomic<int> computing{0};  // threads without the GIL
std::atomic<int> returning{0};  // threads that are about to take it again

std::mutex running_mutex;
std::list<const api::StopToken*> running;  // work that can be stopped

using SignalHandler = void (*)(int);
std::atomic<const api::StopToken*> interrupted{nullptr};  // what Ctrl-C stops
std::atomic<SignalHandler> pythons_handler{nullptr};

void on_interrupt(int signal) {
  if (const api::StopToken* const stop = interrupted.load()) stop->request_stop();
  if (const SignalHandler handler = pythons_handler.load()) handler(signal);
}

[[noreturn]] void wait_for_the_end() {
  for (;;) pause();
}

bool python_raises_interrupts() {
  const nb::module_ signals = nb::module_::import_("signal");
  return signals.attr("getsignal")(signals.attr("SIGINT")).is(signals.attr("default_int_handler"));
}

}  // namespace

bool may_compute_here() {
  const pid_t first = first_process.load();
  return first == 0 || first == getpid();
}

WithoutGil::WithoutGil() {
  pid_t none = 0;
  first_process.compare_exchange_strong(none, getpid());
  if (!may_compute_here()) {
    refuse({.message = "this process was forked after tandem_train had computed in its parent",
            .expected = "a process of its own",
            .fix = "use multiprocessing.get_context(\"spawn\"), or fork before the first use"});
  }
  if (is_ending.load())
    throw Error(ErrorKind::runtime, Diagnostic{.message = "the interpreter ends"});
  ++computing;
  state_ = PyEval_SaveThread();
}

WithoutGil::~WithoutGil() {
  ++returning;
  --computing;
  if (is_ending.load()) {
    --returning;
    wait_for_the_end();
  }
  PyEval_RestoreThread(state_);
  --returning;
}

void end_computing() {
  if (first_process.load() != getpid()) return;
  is_ending.store(true);
  {
    const std::lock_guard lock(running_mutex);
    for (const api::StopToken* const stop : running) stop->request_stop();
  }
  PyThreadState* const state = PyEval_SaveThread();
  while (computing.load() > 0 || returning.load() > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  PyEval_RestoreThread(state);
}

struct Stoppable::Handler {
  struct sigaction before = {};
  const api::StopToken* outer = nullptr;
  SignalHandler outer_handler = nullptr;
  bool is_set = false;
};

Stoppable::Stoppable(const api::StopToken& stop)
    : stop_(stop), handler_(std::make_unique<Handler>()) {
  {
    const std::lock_guard lock(running_mutex);
    running.push_back(&stop_);
  }
  const bool is_main_thread = gettid() == getpid();
  if (!is_main_thread || !python_raises_interrupts()) return;
  Handler& my = *handler_;
  if (sigaction(SIGINT, nullptr, &my.before) != 0) return;
  const bool is_plain = (my.before.sa_flags & SA_SIGINFO) == 0 && my.before.sa_handler != SIG_DFL &&
                        my.before.sa_handler != SIG_IGN;
  if (!is_plain) return;
  my.outer = interrupted.exchange(&stop_);
  my.outer_handler = pythons_handler.load();
  if (my.before.sa_handler != on_interrupt) pythons_handler.store(my.before.sa_handler);
  struct sigaction mine = my.before;
  mine.sa_handler = on_interrupt;
  my.is_set = sigaction(SIGINT, &mine, nullptr) == 0;
}

Stoppable::~Stoppable() {
  Handler& my = *handler_;
  if (my.is_set) {
    sigaction(SIGINT, &my.before, nullptr);
    interrupted.store(my.outer);
    pythons_handler.store(my.outer_handler);
  }
  const std::lock_guard lock(running_mutex);
  running.remove(&stop_);
}

void raise_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

Turn::Turn(std::atomic<bool>& is_taken, const char* object) : is_taken_(is_taken) {
  if (!is_taken.exchange(true)) return;
  refuse({.message = std::string("this ") + object + " is in use",
          .expected = "one thread at a time",
          .fix = std::string("give each thread a ") + object + " of its own, or use a lock"});
}

}  // namespace tandem::python
