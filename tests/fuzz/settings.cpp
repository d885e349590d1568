// Fuzz target: any text as train.toml, or as a policy if its first byte is odd. Settings that are
// read must be the same after writing and reading again; otherwise there is a typed error.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/config/run_config.h"
#include "engine/graph/error.h"
#include "placement/policy.h"
#include "tests/fuzz/defect.h"

namespace {

// Whether a file's name has braces, which stand for several files if no file has that name.
bool has_braces(const tandem::SplitConfig& split) {
  for (const tandem::ArrayFiles& files : split.files) {
    for (const std::string& path : files.paths) {
      if (path.find('{') != std::string::npos) return true;
    }
  }
  return false;
}

void read_settings(std::string_view text) {
  const tandem::RunConfig config = tandem::parse_run_config(text, "/folder/train.toml");
  if (config.data && (has_braces(config.data->train) || has_braces(config.data->eval))) return;
  const std::string written = tandem::to_toml(config);
  if (!(tandem::parse_run_config(written, "/folder/train.resolved.toml") == config)) {
    tandem::defect("reads otherwise than it was written", written);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] % 2 == 0) {
      read_settings(text);
    } else {
      (void)tandem::parse_policy(text, "/folder/policy.toml");
    }
  } catch (const tandem::Error&) {
  }
  return 0;
}
