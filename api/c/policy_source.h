// The policy that a struct of the C library names.
#pragma once

#include <optional>

#include "tandem/policy.h"

namespace tandem::c_library {

/// That of a policy.toml or of its text; "" as the path: one without rules; both null: none is
/// given. Throws Error{usage} where both are given, or with everything that is wrong in it.
/// `config`: the struct's name in messages.
std::optional<api::Policy> given_policy(const char* path, const char* text, const char* config);

}  // namespace tandem::c_library
