// How a model's inputs and its loss are made of its data, in the metadata of an exported file: eval
// and predict without a train.toml then read new data as the training did, not as they would guess
// from it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/training/config/run_config.h"

namespace tandem::api {

/// For the metadata of an export: "data.kind"; for tables "data.columns" where the first line names
/// none, "data.decimal", "data.thousands" and "data.missing"; "data.fields.NAME", as TOML, of the
/// model's inputs; and "loss.terms", "loss.fields.NAME" of the fields that they and metrics read,
/// "eval.metrics" and "model.bind", of whose lengths the inputs are. `outputs`: those that the file
/// keeps; none: all. Terms of values that it may not have are left out.
std::map<std::string, std::string> fields_metadata(const RunConfig& config,
                                                   const std::vector<std::string>& outputs = {});

struct RecordedKeys {
  std::vector<std::string> keys;  // "data.fields.x={ … }"
  bool has_loss = false;          // they say its terms, with the fields of these
};

/// The keys that say so of `data`, a file or a folder of the kind that the model was trained on;
/// csv and tsv count as one kind. `stem`: how the names of the files next to the model begin. Keys
/// that an override sets are left out. Throws Error{usage} where the data is of another kind, and
/// the inputs are recorded.
RecordedKeys recorded_keys(const std::map<std::string, std::string>& metadata,
                           const std::string& data, const std::string& stem,
                           const std::vector<std::string>& overrides);

}  // namespace tandem::api
