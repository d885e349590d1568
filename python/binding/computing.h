// Computation without the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <utility>

#include "tandem/error.h"
#include "tandem/stop.h"

namespace tandem::python {

/// Other Python threads run while it lives. Throws Error{usage} in a process that was forked after
/// its parent had computed, where threads of the parent are missing, and Error{runtime} once the
/// interpreter ends.
class WithoutGil {
 public:
  WithoutGil();
  /// Does not return once the interpreter ends: no other thread can run Python then.
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

template <class Function>
auto compute(Function&& function) {
  const WithoutGil released;
  return function();
}

/// Whether this process computed, or no process did: false in a child that was forked later.
bool may_compute_here();

/// Called once, when the interpreter ends: asks running work to stop, and waits for it.
void end_computing();

/// While it lives, Ctrl-C requests `stop` in addition to what Python makes of it, and so does the
/// end of the interpreter. Ctrl-C only in the main thread, and where Python has its own handler.
class Stoppable {
 public:
  explicit Stoppable(const api::StopToken& stop);
  ~Stoppable();
  Stoppable(const Stoppable&) = delete;
  Stoppable& operator=(const Stoppable&) = delete;

 private:
  struct Handler;
  api::StopToken stop_;
  std::unique_ptr<Handler> handler_;
};

/// Raises what handlers of signals raise, such as KeyboardInterrupt.
void raise_signals();

/// Computes what Ctrl-C stops; the KeyboardInterrupt comes in place of the result or the error.
template <class Function>
auto compute_stoppable(const api::StopToken& stop, Function&& function) {
  const Stoppable stoppable(stop);
  try {
    auto result = compute(std::forward<Function>(function));
    raise_signals();
    return result;
  } catch (const Error&) {
    raise_signals();
    throw;
  }
}

/// One thread's turn with an object. Throws Error{usage} where another thread has it.
class Turn {
 public:
  Turn(std::atomic<bool>& is_taken, const char* object);
  ~Turn() { is_taken_.store(false); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::atomic<bool>& is_taken_;
};

/// An object of the library. A forked child has none of the threads that its end would wait for:
/// there the object stays in memory.
template <class T>
class Held {
 public:
  Held() = default;
  ~Held() {
    if (!may_compute_here()) static_cast<void>(held_.release());
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  void hold(std::unique_ptr<T> object) { held_ = std::move(object); }
  T& operator*() const { return *held_; }
  T* operator->() const { return held_.get(); }

 private:
  std::unique_ptr<T> held_;
};

}  // namespace tandem::python
