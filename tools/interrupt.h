// Handles Ctrl-C, SIGTERM and a closed terminal in commands that take long.
#pragma once

#include <cstdio>
#include <exception>
#include <string_view>

#include "tandem/error.h"
#include "tandem/stop.h"

namespace tandem::tool {

/// What a signal does to waiting system calls, such as a read from a pipe.
enum class Waiting { goes_on, fails };

/// From this call on, the first signal requests `stop`, of which a copy is kept, and a second one
/// ends the process at once; a signal within half a second of the first counts as the same request.
/// If SIGHUP was ignored before (nohup), it stays ignored. With `Waiting::fails`, waiting calls of
/// the main thread fail with EINTR until the command has ended.
void catch_interrupts(const api::StopToken& stop, Waiting waiting);

/// What happens if the command has not ended 0.8 s after a signal: `ends` ends the process, for
/// work that has nothing to save; `tells` (the default) prints that work in progress is finished
/// first.
enum class Unheard { ends, tells };
void when_unheard(Unheard how);

/// The first signal that was received, or 0.
int interrupted_by();

/// Returns what `work` returns. After a signal, an exception from `work` is its way to stop: prints
/// its message about the interrupt and returns 128 + the signal.
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
