// The edits of a page: from the body of a request to the text that the policy has after it.
#pragma once

#include <string>
#include <utility>

#include "api/commands/page/model_tree.h"
#include "api/commands/page/planned_policy.h"

namespace tandem::api {

/// The text after the edit, and a few words that name it. `saved` is the text of the file: its
/// rules were written by people. Throws PageError "bad_request" if `body` does not have the form of
/// an edit, and Error{usage} if the policy does not allow the edit.
std::pair<std::string, std::string> edited_text(const std::string& text, const std::string& saved,
                                                const std::string& path, const PageJson& body,
                                                const ModelTree& tree, PlannedPolicy& planned);

}  // namespace tandem::api
