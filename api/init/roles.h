// The role of an input where its name shows it and its values follow from other inputs: masks,
// positions, segments, decoder ids, caches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/init/fields.h"

namespace tandem::api {

enum class Role : std::uint8_t {
  none,
  mask,            // 1 for tokens, 0 for padding
  positions,       // 0, 1, 2, …
  segments,        // which of two texts a token belongs to
  decoder_ids,     // the labels, shifted by one position
  past,            // keys and values of earlier calls
  switches,        // "use_cache_branch": which half of a merged file runs; 0: without a cache
  encoder_states,  // the output of another file
};

/// The role by the names that exporters of transformers' models use. Only the name counts here;
/// `role_of` also checks that the input has the form that is usual for the role.
Role role_named(const std::string& name);
Role role_of(const InputFacts& input);

/// Whether an input belongs to the decoder: "decoder_input_ids".
bool is_decoders(const std::string& name);

/// Adds fields of inputs that have no array but follow from another field: masks, positions and
/// segments from the ids next to them, decoder ids from the labels. Where a role cannot be filled,
/// the field says why. Free dimensions of caches are bound to 0.
void derive_fields(const std::vector<InputFacts>& inputs, const DataFacts& data,
                   FieldGuesses& guesses);

/// Whether each position of the model's sequences sees only earlier positions: a triangular mask, a
/// causal Attention, or recurrent layers that all run forward.
bool is_causal(const ModelFacts& model);

}  // namespace tandem::api
