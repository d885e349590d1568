#include "api/init/model_config.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tandem::api {
namespace {

namespace fs = std::filesystem;

constexpr const char* config_names[] = {"config.json", "generation_config.json"};

/// No object where the file does not exist or is no JSON.
nlohmann::json config_of(const std::string& folder, const char* name) {
  std::ifstream file(fs::path(folder) / name);
  return file ? nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false) : nlohmann::json();
}

}  // namespace

std::optional<ConfigNumber> number_in_config(const std::string& folder, const char* key) {
  for (const char* name : config_names) {
    const nlohmann::json json = config_of(folder, name);
    if (!json.is_object()) continue;
    const auto at = json.find(key);
    if (at != json.end() && at->is_number_integer() && *at >= 0)
      return ConfigNumber{at->get<std::int64_t>(), name};
  }
  return std::nullopt;
}

std::vector<std::int64_t> numbers_in_config(const std::string& folder, const char* key) {
  std::vector<std::int64_t> numbers;
  for (const char* name : config_names) {
    const nlohmann::json json = config_of(folder, name);
    const auto at = json.is_object() ? json.find(key) : json.end();
    if (at == json.end()) continue;
    for (const nlohmann::json& item : at->is_array() ? *at : nlohmann::json::array({*at})) {
      if (item.is_number_integer() && item >= 0) numbers.push_back(item.get<std::int64_t>());
    }
  }
  return numbers;
}

std::int64_t positions_in_config(const std::string& folder) {
  std::int64_t positions = 0;
  for (const char* key :
       {"max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length"}) {
    const auto found = number_in_config(folder, key);
    if (found && found->value > 0 && positions == 0) positions = found->value;
  }
  const nlohmann::json json = config_of(folder, "config.json");
  const auto type = json.is_object() ? json.find("model_type") : json.end();
  if (positions == 0 || type == json.end() || !type->is_string()) return positions;
  // These models count positions from after the id of the padding.
  const auto name = type->get<std::string>();
  if (name.find("roberta") == std::string::npos && name != "camembert") return positions;
  const auto pad = number_in_config(folder, "pad_token_id");
  return std::max<std::int64_t>(positions - 1 - (pad ? pad->value : 1), 1);
}

}  // namespace tandem::api
