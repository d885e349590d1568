// Where each item of the tree is, and what it takes, as a page shows it.
#pragma once

#include "api/commands/page/model_tree.h"
#include "api/commands/page/planned_policy.h"

namespace tandem::api {

/// An entry for each item of the tree, in its order; null for modules.
PageJson placed_items(const ModelTree& tree, PlannedPolicy& planned);

/// The rules of the policy in the order in which they apply, with what they match and decide.
PageJson rules_of(PlannedPolicy& planned);

}  // namespace tandem::api
