// A whole configuration, guessed from a model and its data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/init/draft.h"
#include "api/init/facts.h"
#include "api/init/recorded_training.h"

namespace tandem::api {

/// The todo of labels that a loss would read which could not be guessed.
inline constexpr std::string_view goes_with_loss = "goes with loss.terms";

struct GuessedConfiguration {
  Draft draft;
  std::string head;                // comment in front of train.toml
  std::string policy;              // policy.toml
  std::vector<std::string> rules;  // of it, as --place takes them
};

/// How much of it is asked for.
struct GuessScope {
  bool trains = true;      // false: the model is only used, and nothing is said of its training
  bool in_stages = false;  // a model in which data decides extents is looked at as far as known
  bool has_loss = false;   // its terms and their fields are said
  SaidOfData said = {};
  RecordedTraining recorded = {};                 // what the model, an export, says of its training
  std::map<std::string, std::int64_t> bind = {};  // free dimensions whose lengths are said
};

/// Paths in it are relative to `folder`, where that is near. `data`: a file or a folder, "" for
/// none. Throws Error{usage} where the model cannot train or the data is not there, Error{data}
/// where files are broken.
GuessedConfiguration guess_configuration(const Engine& engine, const std::string& model,
                                         const std::string& data, const std::string& folder,
                                         const GuessScope& scope = {});

/// "model" says less than its folder.
std::string run_name(const std::string& model);

/// A path as files in `folder` name it, quoted.
std::string near_path(const std::string& path, const std::string& folder);
/// A path as files in `folder` name it, without quotes.
std::string near_path_text(const std::string& path, const std::string& folder);

/// The scope of a training that starts from this model: `overrides` and what the model records of
/// its own training are settled, the rest is guessed.
GuessScope training_scope(const std::string& model, const std::string& data,
                          const std::string& folder, const std::vector<std::string>& overrides);

struct GuessedPolicy {
  std::string text;
  std::vector<std::string> rules;
};
GuessedPolicy guess_policy(const ModelFacts& model);

}  // namespace tandem::api
