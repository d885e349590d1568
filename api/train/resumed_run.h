// The settings of a resumed run: those it was started with, overlaid by the new command line. A
// change of placement, devices or length is refused unless it was asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/train/config_source.h"
#include "engine/config/resume/resumed_config.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// The run directory that `options` name, or the newest unfinished one of the configuration. Throws
/// Error{usage} where there is none to resume.
std::string run_to_resume(const ConfigSource& source, const TrainOptions& options);

/// The record of a run that starts, except for its directory. `ranks`: number of processes.
StartRecord record_of_start(const ConfigSource& source, const TrainOptions& options, int ranks);

class ResumedRun {
 public:
  /// `options`: those of the new command line.
  ResumedRun(std::string run_dir, ConfigSource source, TrainOptions options);

  /// Rules and devices of all command lines.
  const std::vector<std::string>& place() const { return started_.place; }
  const std::vector<std::string>& devices() const { return started_.devices; }
  /// The keys of all command lines, for a run whose configuration is guessed again; `last` are put
  /// last.
  std::vector<std::string> all_keys(const std::vector<std::string>& last) const;
  /// The configuration, from a train.toml or from the run's record of it.
  RunConfig config() const;
  /// The file that `config` reads.
  std::string config_file() const;

  /// For a run that has reached the length it was started with, while train.toml under the new
  /// command line gives a longer one: drops the lengths of earlier command lines, from `config` as
  /// well. Returns a line for people, or "". `config` has a number of samples per batch.
  std::string take_longer_length(RunConfig& config);

  /// Lines for people: the settings that the run continues with. Throws Error{usage} with every
  /// difference in placement, devices and length from the start, unless changes are accepted or,
  /// for a length, the new command line has the key. `place`: all rules that `config` is placed by.
  std::vector<std::string> compared(const RunConfig& config, const std::vector<std::string>& place,
                                    int ranks) const;
  /// The record from this start on, except for the run's directory.
  StartRecord record(int ranks) const;

 private:
  std::vector<Diagnostic> changes(const RunConfig& config,
                                  const std::vector<std::string>& place) const;
  void add_changed_lengths(const RunConfig& config, std::vector<Diagnostic>& to) const;
  void add_changed_placement(const RunConfig& config, const std::vector<std::string>& place,
                             std::vector<Diagnostic>& to) const;
  /// Keys that were edited in train.toml although an earlier command line overrides them.
  void add_hidden_edits(std::vector<std::string>& to) const;

  /// Whether `config` reads the present configuration, not the run's record of it.
  bool goes_by_source() const { return config_file() == source_.path; }

  std::string run_dir_;
  ConfigSource source_;
  TrainOptions options_;
  bool goes_on_longer_ = false;
  StartRecord started_;  // with rules and devices of the new command line
  MovedPaths moved_;
};

}  // namespace tandem::api
