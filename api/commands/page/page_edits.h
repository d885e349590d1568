// The edits of a page: from the body of a request to the text that the policy has after it.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "api/commands/page/edited_policy.h"
#include "api/commands/page/model_tree.h"
#include "api/commands/page/planned_policy.h"
#include "placement/moves/proposed_rules.h"

namespace tandem::api {

/// The text after the edit, and a few words that name it. Throws PageError "bad_request" if `body`
/// does not have the form of an edit, and Error{usage} if the policy does not allow the edit.
/// `proposal`: what a search proposes, if there is something.
std::pair<std::string, std::string> edited_text(const EditedPolicy& policy, const PageJson& body,
                                                const ModelTree& tree, PlannedPolicy& planned,
                                                const std::optional<ProposedRules>& proposal);

}  // namespace tandem::api
