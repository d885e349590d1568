#include "api/init/roles.h"

#include <algorithm>
#include <set>

#include "api/init/data/data_look.h"

namespace tandem::api {
namespace {

using Words = std::set<std::string, std::less<>>;

/// "decoder_attention_mask" without its first word, where that only names the owner.
std::string without_owner(const std::string& name) {
  for (const char* owner : {"decoder_", "encoder_", "input_", "text_", "token_", "tokens_"}) {
    if (name.starts_with(owner)) return name.substr(std::string(owner).size());
  }
  return name;
}

std::string lower_name(std::string name) {
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

}  // namespace

bool is_decoders(const std::string& name) { return name.starts_with("decoder_"); }

Role role_named(const std::string& input) {
  static const Words masks{"mask", "attention_mask", "attn_mask"};
  static const Words positions{"position_ids", "positions",      "position",
                               "pos_ids",      "cache_position", "cache_positions"};
  static const Words segments{"token_type_ids", "token_types", "type_ids",   "segment_ids",
                              "segments",       "segment",     "segment_id", "token_type"};
  const std::string name = lower_name(input);
  if (name == "decoder_input_ids") return Role::decoder_ids;
  if (name.starts_with("past_key") || name.starts_with("past_value") || name.starts_with("past."))
    return Role::past;
  if (name == "use_cache_branch") return Role::switches;
  if (name == "encoder_hidden_states" || name == "encoder_outputs") return Role::encoder_states;
  for (const std::string& known : {name, without_owner(name)}) {
    if (masks.contains(known)) return Role::mask;
    if (positions.contains(known)) return Role::positions;
    if (segments.contains(known)) return Role::segments;
  }
  return Role::none;
}

Role role_of(const InputFacts& input) {
  const Role role = role_named(input.name);
  const bool is_row = input.sample.shape.size() == 1 && input.sample.shape[0] != 1;
  switch (role) {
    case Role::mask:
      return is_row ? role : Role::none;
    case Role::segments:
    case Role::decoder_ids:
      return is_row && is_integer(input.sample.dtype) ? role : Role::none;
    case Role::positions: {
      // "cache_position" has no batch axis.
      const bool is_alone = input.sample.shape.empty() && input.name.starts_with("cache_");
      return (is_row || is_alone) && is_integer(input.sample.dtype) ? role : Role::none;
    }
    case Role::past:
    case Role::encoder_states:
      return is_float(input.sample.dtype) ? role : Role::none;
    default:
      return role;
  }
}

}  // namespace tandem::api
