#include "api/editor_schemas.h"

#include <filesystem>

#include "api/output_file.h"
#include "engine/config/keys/config_keys.h"
#include "engine/formats/files.h"
#include "placement/selectors/policy_schema.h"

namespace tandem::api {

std::vector<std::string> write_editor_schemas(const std::string& folder,
                                              const std::vector<NameRow>& names) {
  const std::filesystem::path own = std::filesystem::path(folder) / ".tandem";
  std::vector<std::string> files = {(own / "train.schema.json").string(),
                                    (own / "policy.schema.json").string()};
  make_directories(own.string());
  write_output(files[0], config_json_schema(), "train.schema.json", "\"title\": \"train.toml\"");
  write_output(files[1], policy_json_schema(names), "policy.schema.json",
               "\"title\": \"policy.toml\"");
  return files;
}

}  // namespace tandem::api
