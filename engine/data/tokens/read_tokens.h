// The arrays of `data.kind = "tokens"`.
#pragma once

#include <memory>
#include <vector>

#include "engine/data/array_set.h"
#include "engine/data/data_source.h"

namespace tandem {

/// Opens the arrays of these names of a split. Null where something was reported.
std::shared_ptr<const ArraySet> read_tokens(const TokenFiles& kind, const SplitConfig& split,
                                            const ArrayNames& names, const OpenOptions& options,
                                            std::vector<Diagnostic>& errors);

/// Throws Error{runtime} where a stop was requested.
void check_token_stop(const OpenOptions& options);

}  // namespace tandem
