#include "api/path_value.h"

#include <nlohmann/json.hpp>

#include "engine/formats/paths.h"
#include "engine/graph/error.h"

namespace tandem::api {

std::string text_value(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return text;
  } catch (const nlohmann::json::exception&) {
    throw Error(
        ErrorKind::usage,
        Diagnostic{.message = "these characters are no UTF-8, as those of train.toml have to be",
                   .file = "command line",
                   .got = text,
                   .fix = "a file can be renamed, or reached by a link of another name"});
  }
}

std::string path_value(const std::string& path) { return text_value(normal_path(path)); }

}  // namespace tandem::api
