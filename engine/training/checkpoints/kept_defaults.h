// Defaults that have changed since a run was started: it goes on with those that it has.
#pragma once

#include <string>
#include <vector>

namespace tandem {

/// Settings ("optimizer.epsilon_form=pytorch") that a resumed run needs beside its configuration
/// `text` and `overrides`, since `resolved`, the resolved one of its start, has another value for
/// what those leave to the default. Empty where a text is no configuration.
std::vector<std::string> kept_defaults(const std::string& text, const std::string& file,
                                       const std::vector<std::string>& overrides,
                                       const std::string& resolved);

}  // namespace tandem
