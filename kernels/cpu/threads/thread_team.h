// The threads that compute the parts of a region together with the thread that asks for it.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/graph/structures/function_ref.h"

namespace tandem {

class SpinTime;

/// Work of one region: called with each part of 0..parts.
using PartFunction = FunctionRef<void(int part)>;

/// The calling thread and workers of its own. Every thread that computes has one team, which it
/// keeps until it ends; teams of different threads know nothing of each other.
///
/// A thread that waits spins first and then sleeps: about a millisecond on a quiet machine, 20 µs
/// while others use the cores (SpinTime).
///
/// Workers compute with the caller's rounding and denormal modes (MXCSR).
class ThreadTeam {
 public:
  ThreadTeam();
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// The calling thread's team. Starts no worker by itself.
  static ThreadTeam& of_this_thread();

  /// Calls f for each part once and returns when all are done: part p by thread p modulo the team.
  /// The caller takes over parts of workers that have not started when its own are done, as
  /// results never depend on who computes a part. The team has at most as many threads as this
  /// process has cores; in a region inside of a region the calling thread computes all parts.
  void run(int parts, PartFunction f);

  /// Starts f(1) to f(threads - 1), each on a thread of its own, all at the same time even on fewer
  /// cores: for parts that wait for each other. The caller computes part 0 by itself and calls
  /// `join`. Where the system starts no more threads the process ends, as with OpenMP. Must not be
  /// called inside a region.
  void launch(int threads, PartFunction f);
  /// Waits for the parts that `launch` has started.
  void join();

  /// Whether the calling thread is inside of a region, as its caller or as a worker.
  static bool is_in_region();

  /// How long threads of this team spin at the moment.
  SpinTime& spin_time();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem
