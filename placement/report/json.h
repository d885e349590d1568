// Diagnostics and fall-backs as the objects that `--json` prints.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "engine/graph/error.h"
#include "placement/resolve.h"

namespace tandem {

/// What `--json` prints. Names of files and texts of a model may be invalid UTF-8: such bytes are
/// shown as U+FFFD.
std::string json_text(const nlohmann::ordered_json& json);

/// {file, line, column, path, message, expected, got, fix}.
nlohmann::ordered_json diagnostic_json(const Diagnostic& diagnostic);

/// {operators, parameters, buffers, added}.
nlohmann::ordered_json counts_json(const ItemCounts& counts);

/// {file, line, at, why} of a rule; null where `rule` is -1.
nlohmann::ordered_json rule_json(const Policy& policy, int rule);

/// One object for each of `fallen_rows`.
nlohmann::ordered_json fallen_json(const Policy& policy, const ResolvedPolicy& resolved);

}  // namespace tandem
