// Maps parts of a trace to micro-batches: a step leaves the spans of its micro-batches one after
// the other.
#pragma once

#include <vector>

#include "engine/runtime/program.h"

namespace tandem::api {

/// The plan's instructions that leave a span in a trace, in the order of launching; one that makes
/// several calls over all ranks occurs once per call.
std::vector<Launch> spanned_launches(const Program& program);

/// A program of the step, with the spans of its runs.
struct TracedProgram {
  Program* program = nullptr;
  int times = 0;  // runs per step
  std::vector<Launch> launches;
};

/// One micro-batch of one step.
struct TracedRun {
  std::size_t program = 0;  // its number in TracedSteps::programs
  std::size_t begin = 0;    // its first span in the trace
  int step = 0;
  /// The previous run was of the same program, so that this one may have begun while that was still
  /// running; when the program changes, all work ends first.
  bool follows = false;
};

class TracedSteps {
 public:
  /// `micro_batches`: the programs of a step's micro-batches, in order; one may occur several
  /// times.
  TracedSteps(const std::vector<Program*>& micro_batches, int steps);

  const std::vector<TracedProgram>& programs() const { return programs_; }  // each once
  const std::vector<TracedRun>& runs() const { return runs_; }
  int steps() const { return steps_; }
  std::size_t spans() const { return spans_; }  // number of spans in the whole trace

 private:
  int steps_;
  std::size_t spans_ = 0;
  std::vector<TracedProgram> programs_;
  std::vector<TracedRun> runs_;
};

}  // namespace tandem::api
