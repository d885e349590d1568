// Rules, counts and attributes between the public library's structures and those of policies.
#pragma once

#include <string_view>

#include "include/tandem/plan.h"
#include "placement/counts.h"
#include "placement/policy.h"

namespace tandem {

/// A rule as the public library has it. `on` stands for run, param and state where they are equal.
api::Rule rule_data(const PolicyRule& rule);
/// The inverse. Throws Error{usage} for a selector that cannot be read.
PolicyRule rule_of(const api::Rule& rule);

api::PartCounts counts_data(const ItemCounts& counts);
ItemCounts counts_of(const api::PartCounts& counts);

/// The attribute of a key: "run".
api::Attribute attribute_of(std::string_view key);

api::Phase phase_data(Phase phase);
const char* phase_name(api::Phase phase);

}  // namespace tandem
