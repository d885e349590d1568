// How a model's inputs are made of its data, in the metadata of an exported file: eval and predict
// without a train.toml then read new data as the training did, not as they would guess from it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/training/config/run_config.h"

namespace tandem::api {

/// For the metadata of an export: "data.kind", "data.columns" of tables without a first line of
/// names, and "data.fields.NAME", as TOML, of all fields that are no labels or weights of the loss.
std::map<std::string, std::string> fields_metadata(const RunConfig& config);

/// The keys that say so, "data.fields.x={ … }", where `data` is a file of the kind that the model
/// was trained on. `stem`: what the names of the files beside the model begin with. Fields that an
/// override says something of are the user's.
std::vector<std::string> recorded_fields(const std::map<std::string, std::string>& metadata,
                                         const std::string& data, const std::string& stem,
                                         const std::vector<std::string>& overrides);

}  // namespace tandem::api
