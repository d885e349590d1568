// An observer of single micro-batches of training steps: for logs and benches.
#pragma once

#include <cstdint>
#include <string>

#include "engine/runtime/program.h"

namespace tandem {

/// Called on the thread that runs the steps.
class MicroBatchWatch {
 public:
  virtual ~MicroBatchWatch() = default;
  /// Whether it watches a step, asked in order of steps.
  virtual bool watches(std::uint64_t step, bool is_logged) {
    (void)step;
    return is_logged;
  }
  /// Whether a step that it does not watch may still be under way when the next one is launched.
  virtual bool lets_steps_overlap() const { return false; }
  virtual void before(Program& program) { (void)program; }
  /// The input slots of `ticket` still hold what the micro-batch has read.
  virtual void after(Program& program, std::uint64_t ticket) = 0;
  /// A text on what was observed in the micro-batches of a whole step.
  virtual std::string report(std::uint64_t step) {
    (void)step;
    return {};
  }
  /// The data of the last report, for operators.json of the run; "": nothing.
  virtual std::string record() const { return {}; }
};

}  // namespace tandem
