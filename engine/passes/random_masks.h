// Places where a drawn mask meets other values: what they are outside of training, and whether the
// places of one draw agree.
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

/// Outside of training `value` is `instead`.
struct MaskedPlace {
  enum class Law { dropout, alpha_dropout, bare };
  Law law = Law::dropout;
  ValueId value, instead;
  bool keeps_below = false;  // which case of the mask is kept
  double share = 0;          // of what is kept
  std::vector<NodeId> read;  // nodes that read the draw on the way to `value`
};

class RandomMasks {
 public:
  using Readers = std::vector<std::vector<NodeId>>;
  /// `outputs`: values that something outside of the graph reads.
  RandomMasks(const NoiseMap& noise, const Readers& readers, const std::set<std::int32_t>& outputs);

  /// Follows what a mask has made of x through numbers that it is multiplied by or that are added,
  /// and through sums with x itself, until a law holds that outside of training gives x. A bare
  /// mask is one where none does: without a factor that makes up for what it leaves out.
  std::optional<MaskedPlace> find(NodeId source, NodeId meeting, const Noise& mask) const;

  /// Whether all places of one draw leave something out and put nothing there. They keep in the
  /// same case, as m * a beside (1 - m) * b does not; and a bare mask is bare everywhere, of a
  /// value that samples decide, in no sum that goes over from one value to another, as a + m * (b -
  /// a).
  bool agree(const std::vector<MaskedPlace>& places) const;

  /// Through products with numbers and what passes numbers on.
  ScaledValue scaled(ValueId value) const;

  /// The one node that reads a value which is no output.
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
