// The C++ structs of a configuration, written out of its table of keys.
#pragma once

#include <string>

#include "engine/config/keys/config_keys.h"

namespace tandem {

/// include/tandem/train_config.h: a struct for each table, an enumeration for each list of words.
std::string config_header(const KeyTable& table = train_keys());
/// api/train/train_config_members.inl: the keys of these structs' members, the words of these
/// enumerations.
std::string config_members(const KeyTable& table = train_keys());

}  // namespace tandem
