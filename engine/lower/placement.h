// The result of placement: a device and a reason for each node and each state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

/// What becomes of an operator's results between forward and backward.
enum class Activations : std::uint8_t { keep, offload, recompute };

/// What crosses of a lookup whose table lives on the host and whose readers do not: one row per
/// id, or each row that occurs once, with an index into them.
enum class Ship : std::uint8_t { results, rows };

/// Copies that come back to a device begin at most so many uses ahead of their own.
constexpr int default_lookahead = 1;

struct PlacedNode {
  int device = 0;
  std::string reason;  // "policy.toml:4", "default"
  Activations acts = Activations::keep;
  int lookahead = default_lookahead;  // of offloaded results
};

struct PlacedState {
  int state = 0;  // home of the master weight and of the update
  int param = 0;  // home of the compute-type weight
  std::string reason;
  int lookahead = default_lookahead;  // of a weight that is read elsewhere
  Ship ship = Ship::results;          // of lookups in it
  int rows_ahead = 0;  // of lookups that ship rows: steps ahead that rows are fetched, 0 or 1
};

struct Placement {
  std::vector<std::string> devices;  // names; index 0 is always "cpu"
  std::vector<PlacedNode> nodes;     // one per node of the training graph
  std::vector<PlacedState> states;   // one per state of the training graph
};

}  // namespace tandem
