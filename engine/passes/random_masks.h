// Places where a drawn mask is applied to other values: what they compute outside of training, and
// whether the places of one draw agree.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/graph/graph.h"
#include "engine/passes/noise.h"

namespace tandem {

/// x times `factor`.
struct ScaledValue {
  ValueId x;
  double factor = 1;
};

/// A value that is `instead` outside of training.
struct MaskedPlace {
  enum class Law { dropout, alpha_dropout, bare };
  Law law = Law::dropout;
  ValueId value, instead;
  bool keeps_below = false;  // whether elements with u < share are kept, or the others
  double share = 0;          // the part of the elements that is kept
  std::vector<NodeId> read;  // nodes that read the draw on the way to `value`
};

class RandomMasks {
 public:
  using Readers = std::vector<std::vector<NodeId>>;
  /// `outputs`: values that something outside of the graph reads.
  RandomMasks(const NoiseMap& noise, const Readers& readers, const std::set<std::int32_t>& outputs);

  /// Follows what a mask makes of x through products and sums with numbers, and through sums with x
  /// itself, until it is dropout or alpha dropout of x, which is x outside of training. Otherwise
  /// it may be a bare mask, which has no factor that makes up for what it leaves out.
  std::optional<MaskedPlace> find(NodeId source, NodeId meeting, const Noise& mask) const;

  /// Whether all places of one draw only leave something out, and none chooses between two values.
  /// All keep the same case of the mask, unlike m * a next to (1 - m) * b. A bare mask is bare
  /// everywhere, applies to a value that depends on what is fed, and is no term of a sum that
  /// interpolates between two values, as a + m * (b - a) does.
  bool agree(const std::vector<MaskedPlace>& places) const;

  /// `value` as x times a factor, seen through products with numbers and what passes elements on.
  ScaledValue scaled(ValueId value) const;

  /// The only node that reads `value`; -1 where there are several, or it is an output.
  NodeId only_reader(ValueId value) const;

 private:
  struct Followed;
  template <class Law>
  std::optional<MaskedPlace> held(MaskedPlace::Law name, const Law& law, const Followed& at) const;
  bool follow(NodeId source, const Noise& mask, NodeId next, Followed& at) const;

  const Graph& graph_;
  const NoiseMap& noise_;
  const Readers& readers_;
  const std::set<std::int32_t>& outputs_;
  std::vector<bool> fed_;  // values that depend on what is fed
};

}  // namespace tandem
