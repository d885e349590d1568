#include "api/data_options.h"

#include "engine/graph/error.h"

namespace tandem::api {

RunConfig config_with_data(const std::string& path, const DataOptions& options) {
  RunConfig config = read_run_config(path, options.overrides);
  if (!config.data) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "there is no [data] table", .file = config.file});
  }
  return config;
}

OpenOptions data_opened_with(const RunConfig& config, const DataOptions& options) {
  OpenOptions open;
  open.seed = config.seed;
  open.threads = config.threads;
  open.on_message = options.on_message;
  open.stop_requested = [stop = options.stop] { return stop.stop_requested(); };
  return open;
}

}  // namespace tandem::api
