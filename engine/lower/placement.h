// The result of placement: a device and a reason for each node and each state.
#pragma once

#include <string>
#include <vector>

namespace tandem {

struct PlacedNode {
  int device = 0;
  std::string reason;  // "policy.toml:4", "default"
};

struct PlacedState {
  int state = 0;  // home of the master weight and of the update
  int param = 0;  // home of the compute-type weight
  std::string reason;
};

struct Placement {
  std::vector<std::string> devices;  // names; index 0 is always "cpu"
  std::vector<PlacedNode> nodes;     // one per node of the training graph
  std::vector<PlacedState> states;   // one per state of the training graph
};

}  // namespace tandem
