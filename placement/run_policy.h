// The policy of a run with what the command line adds to it.
#pragma once

#include <string>
#include <vector>

#include "placement/resolve.h"

namespace tandem {

struct RunPolicy {
  Policy policy;
  std::string text;  // of the policy file, or what a file without rules would say
  std::vector<std::string> added_rules, added_devices;  // by the command line
  ResolveOptions options;
  int threads = 0;  // of the host; 0: all usable cores
};

}  // namespace tandem
