// tandem::api::TrainConfig: reads and writes files.
#include "tandem/train_config.h"

#include "api/train/config_settings.h"
#include "engine/config/run_config.h"
#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"

namespace tandem::api {

TrainConfig TrainConfig::load(const std::string& path) {
  read_run_config(path);  // throws everything that is wrong
  const std::string file = normal_path(path);
  std::vector<Diagnostic> ignored;
  TrainConfig config = config_of(parse_toml(read_file(file), file, ignored));
  config.file = file;
  return config;
}

std::string TrainConfig::text() const { return toml_of(settings_of(*this)); }

}  // namespace tandem::api
