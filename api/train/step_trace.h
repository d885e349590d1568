// Writes the file of `train --trace`: a Chrome trace of chosen steps, each with a mark, from time
// zero on. Measured times and times predicted by the cost model are separate processes in it.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "api/timing/operator_times.h"

namespace tandem::api {

class StepTrace {
 public:
  /// Writes to `path`. Steps from `first` to `last`; `first` 0: the third to the fifth step of this
  /// process, when programs and files are warm. Throws Error{usage} where no trace can be written
  /// to the path. `warn` is called with later failures.
  StepTrace(std::string path, std::uint64_t first, std::uint64_t last,
            std::function<void(const std::string&)> warn = {});

  /// Must be called for steps in their order.
  bool wants(std::uint64_t step);

  /// A traced step: its start and end, and its events (`ph` "M" or with `ts` in microseconds),
  /// including predicted ones. Times of all steps are from one clock; a step that begins before the
  /// prediction of the previous one has ended is shifted to follow it, and so are all later ones.
  void add_step(std::uint64_t step, double start, double end, nlohmann::ordered_json events);

  /// Writes the file once the last step was added; with `at_end`, whatever there is. A failure is
  /// only a warning, because the run is worth more than its trace.
  void write(bool at_end);

  /// Seconds on the clock of `add_step`, for events that this process times.
  static double seconds(ProbeTime time);

 private:
  std::string path_;
  std::uint64_t first_, last_;
  std::function<void(const std::string&)> warn_;
  bool is_written_ = false;
  std::uint64_t newest_ = 0;
  double moved_ = 0, ended_ = 0;  // microseconds: shift of steps from here on; end of the last step
  nlohmann::ordered_json events_ = nlohmann::ordered_json::array();
};

/// Shifts all times so that the earliest is 0, and rounds both ends of slices to nanoseconds, so
/// that adjacent ones do not overlap. Names each track and process once, in the order of display.
nlohmann::ordered_json from_zero(nlohmann::ordered_json events);

}  // namespace tandem::api
