// Defaults that have changed since a run was started: the run keeps those that it started with.
#pragma once

#include <string>
#include <vector>

namespace tandem {

/// Settings ("optimizer.epsilon_form=pytorch") that a resumed run needs in addition to its
/// configuration `text` and `overrides`, because `resolved`, the resolved configuration of its
/// start, has another value for something that those leave to the default. Empty where a text is
/// not a configuration.
std::vector<std::string> kept_defaults(const std::string& text, const std::string& file,
                                       const std::vector<std::string>& overrides,
                                       const std::string& resolved);

}  // namespace tandem
