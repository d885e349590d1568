// An input of a case of tests/expected/policy_file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "placement/resolve.h"
#include "tests/placement/support.h"

namespace tandem::testing {

/// What an input says, behind the lines of the text "before":
///   { at = ... }       a rule; "--text LINE" is another line of the file
///   --whole LINE       a line of the file, which is only parsed
///   --place RULE, --device ARGUMENT, --machine USE, --default DEVICE, --added PATH
///   --without PATH BECAUSE   the second device has no kernel for it
///   --raw PATH NAME          the name of an operator in the file
///   --show PATH              where an operator or a parameter is
///   --uses                   what each rule matches and decides
///   --explain PATH NAME      its attribute of this name
///   --shards                 which parameters are sharded
///   --table PATH             what crosses for its lookups, and what is cached
///   --placed NAME            where that part of the graph is
///   --graph NAME             of policy_graphs.h
///   --rows COUNT             about as many rows of "embed" are read, as the data says if it is
///                            asked; "unknown"
///   --known_rows COUNT       the same, without being asked
///   --cached [WHY NOT]       an answer to who asks for a cache: rows 3 and 5 for 75 % of the ids
///   --edit AT KEY=VALUE ...  edits the text "policy": "-KEY" clears, "?KEY=VALUE" is a filter,
///                            "remove" removes; the lines that differ are shown, or with --check
///                            what the rule matches in the graph and one added part
struct PolicyInput {
  std::string rules, text, edit;
  std::vector<std::string> place, devices, shown, explained, tables, placed;
  ResolveOptions options;
  PlacementFacts facts;
  std::optional<std::string> rows, cached;
  const Graph* graph = &shared_graph();
  bool is_whole = false, edits = false, checks = false, shows_uses = false, shows_shards = false;

  /// Throws std::runtime_error for a graph that is not there.
  explicit PolicyInput(const std::string& input);

 private:
  void take(const std::string& line);
};

}  // namespace tandem::testing
