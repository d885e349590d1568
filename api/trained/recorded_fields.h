// Records in the metadata of an exported file how a model's inputs and its loss are made of its
// data: eval and predict without a train.toml then read new data as the training did, instead of
// guessing from it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/config/run_config.h"

namespace tandem::api {

/// Metadata of an export: "data.kind"; for tables "data.columns" where the first line has no names,
/// "data.decimal", "data.thousands" and "data.missing"; "data.fields.NAME", as TOML, for the
/// model's inputs; and "loss.terms", "loss.fields.NAME" for the fields that terms and metrics read,
/// "eval.metrics" and "model.bind", the lengths of the inputs. `outputs`: those that the file
/// keeps; empty: all. Terms of values that the file may lack are left out.
std::map<std::string, std::string> fields_metadata(const RunConfig& config,
                                                   const std::vector<std::string>& outputs = {});

struct RecordedKeys {
  std::vector<std::string> keys;  // "data.fields.x={ … }"
  bool has_loss = false;          // the keys include the loss's terms with all their fields
};

/// The recorded keys for `data`, a file or a folder of the kind that the model was trained on; csv
/// and tsv count as one kind. `stem`: the prefix of the files next to the model. Keys that an
/// override sets are left out. Throws Error{usage} where the data is of another kind and the inputs
/// are recorded.
RecordedKeys recorded_keys(const std::map<std::string, std::string>& metadata,
                           const std::string& data, const std::string& stem,
                           const std::vector<std::string>& overrides);
/// The recorded keys of a model that was trained on conversations, for prompts that are in no file;
/// none of other models.
std::vector<std::string> recorded_chat_keys(const std::map<std::string, std::string>& metadata,
                                            const std::string& stem,
                                            const std::vector<std::string>& overrides);

}  // namespace tandem::api
