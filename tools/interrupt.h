// What Ctrl-C, SIGTERM and a closed terminal do to commands that take long.
#pragma once

#include <cstdio>
#include <exception>
#include <string_view>

#include "tandem/error.h"
#include "tandem/stop.h"

namespace tandem::tool {

/// What a signal does to calls of the system that wait, such as a read from a pipe.
enum class Waiting { goes_on, fails };

/// From now on the first signal asks `stop`, of which a copy is kept, and a second one ends the
/// process at once; within half a second of the first it counts as the same wish; what ignores
/// SIGHUP (nohup) goes on to. With `Waiting::fails`, waiting calls of the main thread fail with
/// EINTR until the command has ended.
void catch_interrupts(const api::StopToken& stop, Waiting waiting);

/// What becomes of a signal that the command has not ended by after 0.8 s: `ends` is for work that
/// has nothing to save, `tells` (as it is without a call) says that what is under way is finished.
enum class Unheard { ends, tells };
void when_unheard(Unheard how);

/// The signal that came first, or 0.
int interrupted_by();

/// What `work` returns. Where a signal came, what `work` throws is its way to stop: 128 + the
/// signal, and what it says of the interrupt.
template <class Work>
int until_interrupted(Work&& work) {
  try {
    return work();
  } catch (const ErrorElsewhere&) {
    if (interrupted_by() == 0) throw;
    return 128 + interrupted_by();
  } catch (const std::exception& error) {
    if (interrupted_by() == 0) throw;
    const bool is_told = std::string_view(error.what()).starts_with("interrupted");
    std::fprintf(stderr, "tandem: %s\n", is_told ? error.what() : "interrupted");
    return 128 + interrupted_by();
  }
}

}  // namespace tandem::tool
