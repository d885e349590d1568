// What an input is for where its name says so and its values follow from those of others: masks,
// positions, segments, what a decoder reads, caches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/init/fields.h"

namespace tandem::api {

enum class Role : std::uint8_t {
  none,
  mask,            // 1 for tokens, 0 for what fills up
  positions,       // 0, 1, 2, …
  segments,        // which of two texts a token is of
  decoder_ids,     // the labels, one place later
  past,            // keys and values of earlier calls
  switches,        // "use_cache_branch": which half of a merged file runs
  encoder_states,  // what another file computes
};

/// As the exporters of transformers' models name inputs. The name decides alone; `role_of` also
/// asks whether the input has the form that such inputs have.
Role role_named(const std::string& name);
Role role_of(const InputFacts& input);

/// Whether an input is of the half that writes: "decoder_input_ids".
bool is_decoders(const std::string& name);

/// Fields of inputs that no array is for and that follow from another field: of a mask, positions
/// and segments from the ids beside them, of what a decoder reads from the labels. Where a role
/// cannot be filled the field says why. Of caches the free dimensions are bound to 0.
void derive_fields(const std::vector<InputFacts>& inputs, const DataFacts& data,
                   FieldGuesses& guesses);

/// Whether each place of the model's sequences sees earlier places alone: a mask of a triangle, a
/// causal Attention, or recurrent layers that all run forward.
bool is_causal(const ModelFacts& model);

}  // namespace tandem::api
