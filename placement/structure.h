// A hash of what a policy's rules can depend on, so that a policy knows the model it was made for.
#pragma once

#include <string>

#include "engine/graph/graph.h"

namespace tandem {

/// "sha256:..." of the operators' paths and types and the parameters' names and types; the same for
/// every batch size.
std::string structure_hash(const Graph& forward);

}  // namespace tandem
