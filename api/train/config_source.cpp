#include "api/train/config_source.h"

#include "api/init/guessed_run.h"
#include "api/train/config_settings.h"
#include "engine/formats/files.h"

namespace tandem::api {

bool ConfigSource::is_guessed() const { return !settings && api::is_guessed(path); }

std::string ConfigSource::read() const { return settings ? toml_of(*settings) : read_file(path); }

RunConfig ConfigSource::config(const std::vector<std::string>& overrides) const {
  return settings ? run_config_of(*settings, path, overrides) : read_run_config(path, overrides);
}

RunConfig ConfigSource::resumed_config(const StartRecord& started, const MovedPaths& moved,
                                       const std::vector<std::string>& overrides) const {
  return settings ? parse_resumed_config(read(), path, started, moved, overrides)
                  : read_resumed_config(path, started, moved, overrides);
}

NamedRun ConfigSource::named(const std::vector<std::string>& overrides) const {
  return settings ? named_run(read(), path, overrides) : named_run(path, overrides);
}

}  // namespace tandem::api
