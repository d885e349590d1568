// What the program says about the keys of its two files. Standard types only.
#pragma once

#include <string>

#include "tandem/report.h"

namespace tandem::api {

/// All keys of train.toml (or of policy.toml) with type, default and help; or one of them.
std::string config_keys(bool json, bool policy = false);
std::string config_explain(const std::string& key, bool policy = false);
/// The JSON Schema of the file, for editors.
std::string config_schema(bool policy = false);
/// Writes the JSON Schemas of both files into the folder `.tandem` below `folder`, over those of an
/// earlier version. The report has the first lines by which train.toml and policy.toml name them.
Report config_install_schemas(const std::string& folder);
/// Whether an argument sets a key of train.toml ("model.file=moved.onnx"), and is not the file of
/// an array ("images=t10k.gz") or a file of that name.
bool is_setting(const std::string& argument);

}  // namespace tandem::api
