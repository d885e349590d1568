// What `policy explain` says about many operators and parameters, by the rules that decide it.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "placement/report/explain.h"

namespace tandem {

/// All of a module where `name` is the path of one, else what it covers as a selector; without
/// nodes. Nothing where it covers nothing; throws Error{usage} where it is no valid selector.
std::optional<Explained> explain_selected(const ResolvedPolicy& resolved, const PolicyItems& items,
                                          const Graph& forward, const std::string& name);

/// At most some forty lines.
std::string explained_groups_text(const Policy& policy, const ResolvedPolicy& resolved,
                                  const Explained& explained);
/// All groups with all their paths.
nlohmann::ordered_json explained_groups_json(const Policy& policy, const ResolvedPolicy& resolved,
                                             const Explained& explained);

}  // namespace tandem
