// The search of `tandem policy auto`, before anything is written.
#pragma once

#include <string>

#include "placement/auto/find.h"
#include "tandem/policy.h"

namespace tandem::api {

struct AutoSearch {
  FoundPlacement found;
  std::string source, to;     // the policy's file, and that to write
  std::string before, after;  // its text
  bool in_place = false;      // both are one file
  bool is_kept = false;       // the list `auto` stays as it was
};

/// `needs_file`: the result is written. Throws as `policy_auto` does.
AutoSearch search_auto(const PolicyOptions& options, const PolicyAutoOptions& automatic,
                       bool needs_file);

}  // namespace tandem::api
