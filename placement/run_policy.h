// The policy of a run with what the command line adds to it.
#pragma once

#include <string>
#include <vector>

#include "placement/resolve.h"

namespace tandem {

struct RunPolicy {
  Policy policy;
  std::string text;  // the policy file's, or that of a file without rules; not of rules to try
  std::vector<std::string> added_rules, added_devices;  // from the command line
  ResolveOptions options;
  int threads = 0;  // the host's; 0: all usable cores
};

}  // namespace tandem
