// The line of train.toml that gives tables another number of rows, for messages.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tandem {

/// `parameters.shape = [ { at = "table:weight", rows = 13 } ]` for rows by selector.
std::string rows_line(const std::map<std::string, std::int64_t>& rows);

}  // namespace tandem
