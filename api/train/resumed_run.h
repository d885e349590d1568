// What a resumed run goes on with: what it was started with, under the new command line. A change
// of placement, devices or length is refused unless somebody has asked for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/training/start/resumed_config.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// The run directory that `options` mean, or the newest unfinished one of the configuration. Throws
/// Error{usage} where there is none to resume.
std::string run_to_resume(const std::string& config_path, const TrainOptions& options);

/// What is recorded of a run that starts now, but for its directory. `ranks`: how many processes.
StartRecord record_of_start(const std::string& config_path, const TrainOptions& options, int ranks);

class ResumedRun {
 public:
  /// `options`: of the new command line.
  ResumedRun(std::string run_dir, std::string config_path, TrainOptions options);

  /// Rules and devices of all command lines.
  const std::vector<std::string>& place() const { return started_.place; }
  const std::vector<std::string>& devices() const { return started_.devices; }
  /// The keys of all command lines, for a run whose configuration is guessed again; `last` come
  /// last.
  std::vector<std::string> all_keys(const std::vector<std::string>& last) const;
  /// Of a train.toml, or of what the run has recorded of it. `now`: keys of the new command line.
  RunConfig config(const std::vector<std::string>& now) const;
  /// The file that `config` reads.
  std::string config_file() const;

  /// Where the run has reached the length that it was started with, and train.toml under the new
  /// command line says a longer one: earlier command lines have no word on the length any more. A
  /// line for people, or "". `config` and `now` as `config` has them, with a number of samples a
  /// batch.
  std::string take_longer_length(const RunConfig& config, const std::vector<std::string>& now);

  /// Lines for people: what the run goes on with. Throws Error{usage} naming all that is not as at
  /// the start of placement, devices and length, unless changes are accepted or, of a length, the
  /// new command line has the key. `place`: all rules that `config` is placed by.
  std::vector<std::string> compared(const RunConfig& config, const std::vector<std::string>& place,
                                    int ranks) const;
  /// What is recorded from now on, but for the run's directory.
  StartRecord record(int ranks) const;

 private:
  std::vector<Diagnostic> changes(const RunConfig& config,
                                  const std::vector<std::string>& place) const;
  void add_changed_lengths(const RunConfig& config, std::vector<Diagnostic>& to) const;
  void add_changed_placement(const RunConfig& config, const std::vector<std::string>& place,
                             std::vector<Diagnostic>& to) const;
  /// Keys of train.toml that were edited, and that an earlier command line sets.
  void add_hidden_edits(std::vector<std::string>& to) const;

  std::string run_dir_, config_path_;
  TrainOptions options_;
  bool is_recorded_ = false;  // else an older Tandem has started it
  bool goes_on_longer_ = false;
  StartRecord started_;  // with rules and devices of the new command line
  MovedPaths moved_;
};

}  // namespace tandem::api
