// The output of a stage of the GPU check: one line for each check, and a verdict at the end.
#pragma once

#include <cstdio>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tandem::gpu_check {

using Json = nlohmann::ordered_json;

/// Exit codes of a stage.
/// `stopped`: an error of the GPU ended the stage at the check that the verdict names as
/// "stopped_at"; another process continues the stage with `--after` that check.
enum Exit : int { passed = 0, failed = 1, usage = 2, no_gpu = 3, stopped = 4, skipped = 77 };

/// Thrown only by `Report`, when an error of the GPU has stopped the stage.
struct Stopped {};

/// Writes each line at once, so that none is lost in a crash.
class Report {
 public:
  using Sink = std::function<void(const std::string& line)>;

  /// With `json` each line is a JSON object, otherwise text for people.
  Report(std::string stage, bool json, Sink sink = to_standard_output);

  /// Reports an error that must be at most `limit`; NaN fails.
  void measured(const std::string& check, double error, double limit);
  void passed(const std::string& check);
  void failed(const std::string& check, const std::string& why);
  /// Reports that a part of the stage cannot run here.
  void skipped(const std::string& check, const std::string& why);
  /// Reports a number that has no limit.
  void value(const std::string& name, double number, const std::string& unit);
  void note(const std::string& name, Json content);

  /// Skips all checks up to this one.
  void start_after(std::string check) { after_ = std::move(check); }
  /// Runs a check, unless it is skipped. The check fails with what it throws. After an error of the
  /// GPU ("sticky") CUDA fails all later calls of the process: if `is_broken` says so after a
  /// failure, the stage is stopped.
  template <class Check, class Broken>
  void run(const std::string& check, Check f, Broken is_broken) {
    if (is_before(check)) return;
    const int failures_before = failures_;
    try {
      f();
    } catch (const std::exception& error) {
      failed(check, error.what());
    }
    if (failures_ == failures_before || !is_broken()) return;
    stopped_at_ = check;
    throw Stopped();
  }

  /// Writes the verdict's line: "failed" if any check has failed or if nothing was reported at all,
  /// "skipped" if no check was made and one was skipped; with "stopped_at" if the stage was
  /// stopped. Returns the exit code.
  int finish();

  int checks() const { return checks_; }
  int failures() const { return failures_; }

  static void to_standard_output(const std::string& line);

 private:
  struct Worst {
    double part = 0;  // error / limit
    double error = 0, limit = 0;
    std::string check;
  };
  void write(Json line, const std::string& text);
  bool is_before(const std::string& check);

  std::string stage_, first_failure_, first_skip_, after_, stopped_at_;
  bool json_, went_on_ = false;  // `went_on_`: the check `after_` was found
  Sink sink_;
  int checks_ = 0, failures_ = 0, skips_ = 0, values_ = 0;
  std::vector<Worst> worst_;  // largest `part` first, at most ten
};

}  // namespace tandem::gpu_check
