// Values of parameters from files, as parameters.load says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/train/loading/weights_match.h"

namespace tandem {

/// Takes a state's new value; for a sharded state, this rank's part. It may be pages of a file.
using WriteState = std::function<void(const std::string& name, const HostTensor& value)>;

/// Opens the file of a rule and writes what it has for the states of `graph`. What does not fit is
/// one problem with a table, and nothing is written then. Returns notes for people. Throws what
/// opening and reading the file throw.
std::vector<std::string> load_weights(const LoadRule& rule, const Graph& graph,
                                      const LoadingParts& parts, const WriteState& write,
                                      std::vector<Diagnostic>& problems);

}  // namespace tandem
