// What `train --trace` writes: a Chrome trace of chosen steps, each with a mark, from time zero on.
// What was measured and what the cost model predicts are processes of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "api/timing/operator_times.h"

namespace tandem::api {

class StepTrace {
 public:
  /// Writes into `path`. Steps from `first` to `last`; 0: the third to the fifth that this process
  /// takes, when programs and files are warm. Throws Error{usage} where the path is no place for a
  /// trace. `warn` hears of what fails later.
  StepTrace(std::string path, std::uint64_t first, std::uint64_t last,
            std::function<void(const std::string&)> warn = {});

  /// Asked of steps in their order.
  bool wants(std::uint64_t step);

  /// A traced step: from when to when, and its events (`ph` "M" or with `ts` in microseconds), what
  /// is predicted of it among them. Times of all steps are those of one clock; a step that begins
  /// before the prediction of the last one has ended is moved behind it, with all that follows.
  void add_step(std::uint64_t step, double start, double end, nlohmann::ordered_json events);

  /// Writes the file once the last step is there, or with `at_end` whatever there is. Where it
  /// cannot be written, a warning says so: the run is worth more than its trace.
  void write(bool at_end);

  /// Seconds on the clock of `add_step`, where events are timed here.
  static double seconds(ProbeTime time);

 private:
  std::string path_;
  std::uint64_t first_, last_;
  std::function<void(const std::string&)> warn_;
  bool is_written_ = false;
  std::uint64_t newest_ = 0;
  double moved_ = 0, ended_ = 0;  // microseconds: of the steps from now on; the end of the last one
  nlohmann::ordered_json events_ = nlohmann::ordered_json::array();
};

/// Moves all times so that the earliest is 0, and rounds both ends of slices to nanoseconds, so
/// that those that touch do not overlap. Names each track and process once, in the order to show
/// them.
nlohmann::ordered_json from_zero(nlohmann::ordered_json events);

}  // namespace tandem::api
