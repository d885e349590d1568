// Commands for who writes a policy.toml: names, completion, editing in place, other viewers.
// Standard types only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tandem/plan.h"
#include "tandem/policy.h"

namespace tandem::api {

/// What a rule may name: operators, parameters and parts that Tandem adds, with sizes. `at`: only
/// what this selector covers, "" = all; `sort`: "graph" | "path" | "op" | "bytes".
Report policy_names(const PolicyOptions& options, const std::string& at = "",
                    const std::string& sort = "graph");
/// The JSON Schema of a policy.toml for this model: editors complete its modules, operators and
/// parameters in selectors. `at`: only what this selector covers, "" = all.
std::string policy_schema(const PolicyOptions& options, const std::string& at = "");

/// The plan, which is also written as a file that the viewer Model Explorer opens: the model as
/// nested modules, each node with its device, bytes, time and the line of the policy that decided.
/// "": no file. Throws Error{usage} where it would replace a file of another kind.
Plan policy_plan(const PolicyOptions& options, const std::string& model_explorer);

/// Accelerators that `PolicyOptions::profile` may name: "h100", ...
std::vector<std::string> known_accelerators();

struct PolicyChange {
  std::string at;                                            // the rule's selector, as written
  std::vector<std::pair<std::string, std::string>> filters;  // the rule's: {"op", "Gather"}
  std::vector<std::pair<std::string, std::string>> set;      // {"run", "cpu"}
  std::vector<std::string> clear;                            // keys to take away
  bool remove = false;                                       // the whole rule
};
/// Sets or clears a rule in place; the rest of the file stays as it is, to the character. The
/// report shows the lines that changed. With a configuration or a model in `model` nothing is
/// written, and Error{usage} thrown, where the rule would match nothing there, or where nothing
/// that it matches has an attribute that is set.
Report policy_edit(const std::string& path, const PolicyChange& change,
                   const PolicyOptions& model = {});

}  // namespace tandem::api
