// How a language model's inputs are made of tokens, and what its free dimensions are bound to.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/graph/error.h"
#include "importer/inputs/declared_inputs.h"

namespace tandem::api {

/// The arrays that inputs are made of, as `data.kind = "chat"` calls them.
namespace text_arrays {
inline constexpr const char *tokens = "tokens", *mask = "mask", *positions = "positions",
                            *attention = "attention";
}

struct TextInputs {
  /// One a fed input: `from` is one of `text_arrays`.
  std::vector<FieldConfig> fields;
  /// Names of free dimensions that are as long as the text.
  std::vector<std::string> lengths;
  /// Extents of the other free dimensions, and values of inputs: caches are empty.
  std::vector<std::pair<std::string, std::int64_t>> bind;
  std::int64_t only_length = 0;     // the one length that the model takes; 0: any
  std::int64_t trained_length = 0;  // the length of the training; 0: unknown
  std::string fixed_by;             // what allows only that length, for messages
  /// Inputs that nothing fills: where the logits depend on one, the model cannot write.
  std::vector<Diagnostic> unfilled;
};

/// Fields of the configuration are used as they are where they are made of such arrays; other
/// inputs by the names that exporters give them. Throws Error{usage} where no input takes tokens,
/// and for inputs of an encoder.
TextInputs text_inputs(const RunConfig& config, const std::vector<DeclaredInput>& inputs);

}  // namespace tandem::api
