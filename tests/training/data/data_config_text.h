// The [data] section of a configuration, for tests that read files of a temporary folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/keys/config_check.h"
#include "engine/data/data_source.h"
#include "tests/training/formats/temporary_folder.h"

namespace tandem::testing {

inline DataConfig data_config(const TemporaryFolder& folder, const std::string& data) {
  const std::string text =
      "model = 'm.onnx'\nepochs = 1\n[optimizer]\nkind = 'sgd'\n[data]\n" + data;
  return *parse_run_config(text, folder / "train.toml").data;
}

/// The integers that a field has for one sample.
inline std::vector<std::int64_t> ids_of(const DataSource& source, const std::string& field,
                                        std::int64_t sample) {
  const int index = source.find_field(field);
  const TensorType& type = source.fields()[static_cast<std::size_t>(index)].sample;
  std::vector<std::int64_t> ids(static_cast<std::size_t>(type.elements()));
  source.fill(index, std::vector<std::int64_t>{sample}, nullptr, ids.data());
  return ids;
}

}  // namespace tandem::testing
