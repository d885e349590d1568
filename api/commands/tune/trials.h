// The trials of a search and their results: tune.json, tune.csv and tune.svg.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/commands/tune/search_space.h"
#include "engine/metrics/metric.h"

namespace tandem::api {

/// `stopped`: its last round is over, and it was not selected for the next one.
enum class TrialStatus : std::uint8_t { waiting, interrupted, stopped, finished, failed };
std::string_view to_text(TrialStatus status);

struct Trial {
  int number = 0;  // counted from 1
  TrialSettings settings;
  TrialStatus status = TrialStatus::waiting;
  /// The metric at the end of each round that the trial was in; without halving there is one round.
  std::vector<double> values;
  std::uint64_t steps = 0;
  double seconds = 0;
  std::map<std::string, double> evaluation;
  std::string error;  // the message, where the trial failed

  std::string folder_name() const;  // "trial-07"
  /// The metric of its last round; NaN where it has none.
  double value() const;
};

/// What identifies a search: a different search has no trials in common with it.
struct Search {
  std::string config;         // absolute path
  std::string config_sha256;  // hash of all keys that do not vary
  std::vector<std::string> over;
  std::uint64_t seed = 0;
  int halving = 0;
  std::string metric;
  Better better = Better::smaller;
};

/// Best first: by the number of rounds that they were in, then by value; those without a value
/// last, in their order.
std::vector<const Trial*> ranked(const std::vector<Trial>& trials, Better better);

/// Reads what tune.json of the folder records into the trials of the same numbers. Does nothing
/// where the file does not exist. Throws Error{usage} where the folder belongs to another search or
/// to none, Error{data} where the file is broken.
void read_trials(const std::string& folder, const Search& search, std::vector<Trial>& trials);

/// Writes the three files. `command`: the command of the best trial, or "".
void write_trials(const std::string& folder, const Search& search, const std::vector<Trial>& trials,
                  const std::string& command);

/// For people, best first.
std::string trials_text(const Search& search, const std::vector<Trial>& trials);
/// The document of tune.json.
std::string trials_json(const Search& search, const std::vector<Trial>& trials,
                        const std::string& command);

}  // namespace tandem::api
