// Whether a rule that an edit writes means something in a model: checked before it is written.
#pragma once

#include <string>
#include <string_view>

#include "placement/edit.h"
#include "placement/resolve.h"

namespace tandem {

/// A model that no policy places yet.
struct EditedModel {
  const Graph& forward;
  const PolicyItems& items;
  const ResolvedPolicy& resolved;
};

/// What the rule matches. Throws one Error{usage} where it matches nothing, unless it is
/// `optional`, or where nothing that it matches can have one of the attributes `keys`. `path`: the
/// policy's.
ItemCounts check_rule(const PolicyRule& rule, const std::vector<std::string>& keys,
                      const std::string& path, const EditedModel& model);

/// Counts for the rule that `edit` has set in the text `after`, with its attributes.
ItemCounts check_edit(std::string_view after, const std::string& path, const PolicyEdit& edit,
                      const EditedModel& model);

}  // namespace tandem
