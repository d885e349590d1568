#include "api/train/long_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "api/init/model_config.h"
#include "api/init/roles.h"

namespace tandem::api {

std::string long_samples(const std::string& model_file, const Graph& imported) {
  std::int64_t longest = 0;
  for (const NamedValue& input : imported.inputs) {
    const TensorType& type = imported.type(input.value);
    const bool is_sequence = input.name == "input_ids" || role_named(input.name) == Role::positions;
    if (is_sequence && type.shape.size() == 2 && is_integer(type.dtype))
      longest = std::max(longest, type.shape[1]);
  }
  if (longest == 0) return "";
  const std::string folder = std::filesystem::path(model_file).parent_path().string();
  const std::int64_t positions = positions_in_config(folder);
  if (positions == 0 || longest <= positions) return "";
  return fmt::format(
      "samples have {} tokens, and the model has positions for {}, as config.json in its folder "
      "says: it has learned nothing about later positions (data.length and model.bind, or the "
      "length of tokens(), shorten samples)",
      longest, positions);
}

}  // namespace tandem::api
