// Reads the config.json that transformers and optimum write next to a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tandem::api {

struct ConfigNumber {
  std::int64_t value = 0;
  std::string file;  // "config.json", or "generation_config.json"
};
/// A whole number of 0 or more that the folder's files have under this key.
std::optional<ConfigNumber> number_in_config(const std::string& folder, const char* key);

/// The whole numbers of 0 or more that the folder's files have under this key, in both of them: a
/// number or a list.
std::vector<std::int64_t> numbers_in_config(const std::string& folder, const char* key);

/// The number of tokens that the model has positions for, from the folder's config.json; 0:
/// unknown.
std::int64_t positions_in_config(const std::string& folder);

}  // namespace tandem::api
