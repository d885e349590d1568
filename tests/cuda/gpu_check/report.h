// What a stage of the GPU check says: one line for each check, and a verdict at the end.
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
/// `stopped`: an error of the GPU ended the stage at the check that its verdict names as
/// "stopped_at"; `--after` that check goes on in another process.
enum Exit : int { passed = 0, failed = 1, usage = 2, no_gpu = 3, stopped = 4, skipped = 77 };

/// Thrown, by `Report` alone, where an error of the GPU has stopped the stage.
struct Stopped {};

/// Lines go out as they come, so that a crash costs none of them.
class Report {
 public:
  using Sink = std::function<void(const std::string& line)>;

  /// `json`: each line is a JSON object, else text for people.
  Report(std::string stage, bool json, Sink sink = to_standard_output);

  /// An error that must be at most `limit`; NaN fails.
  void measured(const std::string& check, double error, double limit);
  void passed(const std::string& check);
  void failed(const std::string& check, const std::string& why);
  /// A part of the stage that cannot run here.
  void skipped(const std::string& check, const std::string& why);
  /// A number that nothing is asked of.
  void value(const std::string& name, double number, const std::string& unit);
  void note(const std::string& name, Json content);

  /// Checks up to this one are passed over.
  void start_after(std::string check) { after_ = std::move(check); }
  /// Runs a check, unless it is passed over. What it throws is its failure. CUDA gives an error of
  /// the GPU ("sticky") to all later calls of the process: where `is_broken` says so after a
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

  /// The verdict's line: "failed" where any check has failed, "skipped" where none was made and one
  /// was skipped, "failed" where nothing was said at all; "stopped_at" where the stage was stopped.
  /// Returns the exit code.
  int finish();

  int checks() const { return checks_; }
  int failures() const { return failures_; }

  static void to_standard_output(const std::string& line);

 private:
  struct Worst {
    double part = 0;  // of the limit
    double error = 0, limit = 0;
    std::string check;
  };
  void write(Json line, const std::string& text);
  bool is_before(const std::string& check);

  std::string stage_, first_failure_, first_skip_, after_, stopped_at_;
  bool json_, went_on_ = false;  // went on behind `after_`
  Sink sink_;
  int checks_ = 0, failures_ = 0, skips_ = 0, values_ = 0;
  std::vector<Worst> worst_;  // by part, at most ten
};

}  // namespace tandem::gpu_check
