// The [data] section of a configuration, for tests that read files of a temporary folder.
#pragma once

#include <string>

#include "engine/training/config/config_check.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {

inline DataConfig data_config(const TemporaryFolder& folder, const std::string& data) {
  const std::string text =
      "model = 'm.onnx'\nepochs = 1\n[optimizer]\nkind = 'sgd'\n[data]\n" + data;
  return *parse_run_config(text, folder / "train.toml").data;
}

}  // namespace tandem::testing
