// Diagnostics and fall-backs as the objects that `--json` prints.
#pragma once

#include <nlohmann/json.hpp>

#include "api/crossings.h"
#include "engine/graph/error.h"

namespace tandem::api {

/// {file, line, column, path, message, expected, got, fix}.
nlohmann::ordered_json diagnostic_json(const Diagnostic& diagnostic);

/// One object for each of `fallen_rows`.
nlohmann::ordered_json fallen_json(const Policy& policy, const ResolvedPolicy& resolved);

}  // namespace tandem::api
