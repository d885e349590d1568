// Options and configuration that every command about data starts from.
#pragma once

#include <string>

#include "api/program/data.h"
#include "engine/config/run_config.h"
#include "engine/data/data_source.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// Throws Error{usage} where there is no [data].
RunConfig config_with_data(const std::string& path, const DataOptions& options);

/// Without a model: integers stay as the files have them.
OpenOptions data_opened_with(const RunConfig& config, const DataOptions& options);

}  // namespace tandem::api
