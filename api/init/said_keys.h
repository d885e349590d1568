// What keys of a command line or of an export's record say before the data is looked into.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/init/facts.h"
#include "engine/training/config/config_value.h"

namespace tandem::api {

/// "KEY=VALUE" as values; what cannot be read is left out: reading the configuration tells it.
ConfigValue tree_of(const std::vector<std::string>& keys);

/// The columns or arrays that a field is made of; none where it does not say them.
std::vector<std::string> said_columns(const ConfigValue& field);

/// What keys say of the data's cells and, where `has_fields`, of what its columns are for.
SaidOfData said_of_data(const std::vector<std::string>& keys, bool has_fields);

/// Lengths that keys say of the model's free dimensions.
std::map<std::string, std::int64_t> said_bind(const std::vector<std::string>& keys);

}  // namespace tandem::api
