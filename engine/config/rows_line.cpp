#include "engine/config/rows_line.h"

#include <fmt/format.h>

#include "engine/config/keys/config_value.h"
#include "engine/graph/text.h"

namespace tandem {

std::string rows_line(const std::map<std::string, std::int64_t>& rows) {
  const auto rule = [](const auto& one) {
    return fmt::format("{{ at = {}, rows = {} }}", toml_string(one.first), one.second);
  };
  return "parameters.shape = [ " + joined(rows, ", ", rule) + " ]";
}

}  // namespace tandem
