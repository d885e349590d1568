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
#include "placement/names.h"

namespace tandem::api {

/// The todo of labels that could not be guessed because the loss that reads them is open.
inline constexpr std::string_view goes_with_loss = "goes with loss.terms";

struct GuessedConfiguration {
  Draft draft;
  std::string head;                // comment at the top of train.toml
  std::string policy;              // text of policy.toml
  std::vector<std::string> rules;  // rules of the policy, as --place takes them
  std::vector<NameRow> names;      // what rules may name
};

/// Which parts of the configuration are needed.
struct GuessScope {
  bool trains = true;  // false: the model is only used, and its training is not mentioned
  /// Where data decides extents, inspect the model only as far as they are known.
  bool in_stages = false;
  bool has_loss = false;  // the user gives the terms of the loss and their fields
  SaidOfData said = {};
  RecordedTraining recorded = {};  // what the model says about its training, if it is an export
  std::map<std::string, std::int64_t> bind = {};  // free dimensions whose lengths are given
};

/// Paths in it are relative to `folder` where that is near. `data`: a file or a folder, "" for
/// none. Throws Error{usage} where the model cannot train or the data does not exist, Error{data}
/// where files are broken.
GuessedConfiguration guess_configuration(const Engine& engine, const std::string& model,
                                         const std::string& data, const std::string& folder,
                                         const GuessScope& scope = {});

/// A name for the run: the file's, or the folder's where the file is called "model".
std::string run_name(const std::string& model);

/// A path as files in `folder` name it, quoted.
std::string near_path(const std::string& path, const std::string& folder);
/// A path as files in `folder` name it, without quotes.
std::string near_path_text(const std::string& path, const std::string& folder);

/// The scope of a training that starts from this model: `overrides` and what the model records of
/// its own training are fixed, the rest is guessed.
GuessScope training_scope(const std::string& model, const std::string& data,
                          const std::string& folder, const std::vector<std::string>& overrides);

struct GuessedPolicy {
  std::string text;
  std::vector<std::string> rules;
};
GuessedPolicy guess_policy(const ModelFacts& model);

}  // namespace tandem::api
