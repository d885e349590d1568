// Whether a rule that `policy edit` sets means something in a model: checked before it is written.
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

/// What the rule matches that `edit` has set in the text `after`. Throws one Error{usage} where
/// it matches nothing, unless it is `optional`, or where nothing that it matches can have an
/// attribute that `edit` sets.
ItemCounts check_edit(std::string_view after, const std::string& path, const PolicyEdit& edit,
                      const EditedModel& model);

}  // namespace tandem
