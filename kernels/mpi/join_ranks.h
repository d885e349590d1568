// The ranks of this run over MPI: who started them, how they find each other, what they send.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "engine/ranks/rank_group.h"

namespace tandem {

struct JoinOptions {
  std::chrono::milliseconds start_limit{60000};  // for all ranks to come
  /// Limits for an operation over all ranks, and for an exchange. A rank that has died or was
  /// stopped is found within ten seconds; these are for one that computes for ever, and longer than
  /// the longest checkpoint that one rank writes, or the largest table that it prepares, while
  /// others wait.
  std::chrono::milliseconds operation_limit{3600000}, exchange_limit{24 * 3600000};
  MessageSizes sizes;
};

/// A group of one where this process runs without other ranks: no launcher has set its variables,
/// or one for a single rank. Else MPI is started, for the rest of the process, rank 0 listens at a
/// free port of its own (or at TANDEM_ADDRESS) that the others learn over MPI, and all have come.
/// May be called again once the group has gone. Throws Error{usage} where MPI or its plug-in is
/// missing or started another number of ranks, Error{runtime} where a rank does not come.
///
/// A rank that ends with an error calls `rendezvous()->fail(message)` before the group goes; one
/// that just ends is taken for one that is done.
std::shared_ptr<RankGroup> join_ranks(const JoinOptions& options = {});

/// What `doctor` says about MPI.
struct MpiReport {
  bool usable = false;
  std::string version;   // "Open MPI v4.1.4, …"
  std::string file;      // path of the plug-in
  std::string launcher;  // the path of mpirun; "" where there is none
  std::string problem, fix;
};
/// Starts nothing.
MpiReport mpi_report();

}  // namespace tandem
