// What keys of a command line or of an export's record say about the data before it is read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/init/facts.h"
#include "engine/config/keys/config_value.h"

namespace tandem::api {

/// "KEY=VALUE" as a tree of values; unreadable ones are left out, since reading the configuration
/// reports them.
ConfigValue tree_of(const std::vector<std::string>& keys);

/// The columns or arrays that a field is made of; none where the field does not name them.
std::vector<std::string> said_columns(const ConfigValue& field);

/// What keys say about the data's cells and, where `has_fields`, about the use of its columns.
SaidOfData said_of_data(const std::vector<std::string>& keys, bool has_fields);

/// The lengths that keys give to the model's free dimensions.
std::map<std::string, std::int64_t> said_bind(const std::vector<std::string>& keys);

}  // namespace tandem::api
