#include "engine/train/divergence/bound_lengths.h"

#include <algorithm>
#include <optional>
#include <string>

#include "engine/config/keys/config_value.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

/// The only axis after the batch axis in which two shapes differ.
std::optional<std::size_t> other_axis(const Shape& one, const Shape& other) {
  if (one.size() != other.size()) return std::nullopt;
  std::optional<std::size_t> found;
  for (std::size_t axis = 1; axis < one.size(); ++axis) {
    if (one[axis] == other[axis]) continue;
    if (found) return std::nullopt;
    found = axis;
  }
  return found;
}

}  // namespace

void check_bound_lengths(const RunConfig& config, const Graph& forward, const FieldTypes& fields) {
  if (!config.data) return;
  for (const NamedValue& input : forward.inputs) {
    const auto field = fields.find(input.name);
    if (field == fields.end()) continue;
    const Shape &wanted = forward.type(input.value).shape, &given = field->second.shape;
    const auto axis = other_axis(wanted, given);
    if (!axis) continue;
    const auto& bind = config.model.bind;
    const auto bound = std::find_if(bind.begin(), bind.end(), [&](const auto& dimension) {
      return dimension.second == wanted[*axis];
    });
    if (bound == bind.end()) continue;
    const bool is_window = config.data->window_length() == given[*axis];
    const std::string length = std::to_string(given[*axis]);
    const std::string key = "model.bind." + toml_key(bound->first);
    Diagnostic d = at(
        config.model.where, is_window ? "" : "data.fields." + input.name,
        (is_window ? "data.length is " + length
                   : "the field has " + length + " entries in dimension " + std::to_string(*axis)) +
            " and " + key + " is " + std::to_string(bound->second) +
            ": a sample is as long as the model is bound");
    const std::string setting = key + "=" + length;
    const bool needs_quotes = key.find('"') != std::string::npos;  // those of the shell
    d.fix = "set both alike: " + (needs_quotes ? "'" + setting + "'" : setting) +
            (is_window ? ", or data.length=" + std::to_string(bound->second) : "");
    throw Error(ErrorKind::usage, std::move(d));
  }
}

}  // namespace tandem
