// The result of placement: a device and a reason for each node and each state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

/// What becomes of an operator's results between forward and backward.
enum class Activations : std::uint8_t { keep, offload, recompute };

/// What a lookup sends whose table lives on the host and whose readers do not: one row per id, or
/// every different row once, with an index into them.
enum class Ship : std::uint8_t { results, rows };

/// Copies that come back to a device begin at most this many uses before the one they serve.
constexpr int default_lookahead = 1;

struct PlacedNode {
  int device = 0;
  std::string reason;  // "policy.toml:4", "default"
  Activations acts = Activations::keep;
  int lookahead = default_lookahead;  // for results that are offloaded
};

struct PlacedState {
  int state = 0;  // home of the master weight and of the update
  int param = 0;  // home of the compute-type weight
  std::string reason;
  int lookahead = default_lookahead;  // for a weight that is read on another device
  Ship ship = Ship::results;          // what lookups in it send
  int rows_ahead = 0;  // how many steps ahead lookups that ship rows fetch them: 0 or 1
};

struct Placement {
  std::vector<std::string> devices;  // names; index 0 is always "cpu"
  std::vector<PlacedNode> nodes;     // one per node of the training graph
  std::vector<PlacedState> states;   // one per state of the training graph
};

}  // namespace tandem
