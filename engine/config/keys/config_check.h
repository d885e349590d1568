// Checks a configuration's tree against the table of keys, and reads the small languages inside
// strings.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/config/keys/config_keys.h"
#include "engine/config/keys/config_value.h"

namespace tandem {

/// Against `table`: reports unknown keys, wrong types, values that are not allowed and missing
/// required keys, all of them; what was reported becomes Kind::invalid.
void check_config(ConfigValue& root, std::vector<Diagnostic>& errors,
                  const KeyTable& table = train_keys());

/// ValueTypes that a value may be taken for.
unsigned types_of(const ConfigValue& value);

/// "500 steps", "1 epoch", "30 min", "2h"; nothing where it is none of these.
std::optional<Duration> parse_duration(std::string_view text);
/// "scale(1/255)" and its kin. Throws std::invalid_argument, what is wrong with it.
Transform parse_transform(std::string_view text);
/// "none", "full", "buffer 1000"; nothing where it is none of these.
std::optional<ShuffleConfig> parse_shuffle(std::string_view text);
/// "day_{0..2}.gz" → day_0.gz, day_1.gz, day_2.gz; nothing where braces do not fit or make too
/// many.
std::optional<std::vector<std::string>> expand_braces(const std::string& text);

}  // namespace tandem
