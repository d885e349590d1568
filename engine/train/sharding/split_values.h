// A rewrite of a graph in which values may be split over ranks: each old value becomes a value of
// the own samples, a block for all samples, or both.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/graph/rewrite.h"
#include "engine/train/group/sample_exchange.h"

namespace tandem {

/// Values are named by their ids in the old graph; exchanges are made where something first wants
/// them, and once.
class SplitValues {
 public:
  /// `from` has blocks as the starts of sharded states, and the types of wholes everywhere else.
  SplitValues(const Graph& from, const OperatorSet& operators, const RankShares& ranks);

  const Graph& from() const { return from_; }
  GraphRewrite& to() { return to_; }
  GraphBuilder& g() { return to_.builder(); }
  SampleExchange& exchange() { return exchange_; }
  /// Type of the whole value.
  const TensorType& type(ValueId old) const { return from_.type(old); }

  /// The value's block; null where it is not split.
  const SplitValue* split(ValueId old) const;
  void set_split(ValueId old, const SplitValue& value) { splits_[old.index] = value; }

  /// A value of the node that is made only when something needs it whole, and the split logits that
  /// it is the LogSoftmax of, in its shape.
  void set_waiting(ValueId old, NodeId node, const SplitValue& logits);
  const SplitValue* waiting(ValueId old) const;

  /// The value of the own samples, whole. Leaves the builder's scope as it is, as all below do.
  ValueId own(ValueId old);
  /// Copies the node, to compute it on values of the own samples.
  void copy(NodeId node);
  /// Whole values of all samples.
  ValueId gathered(ValueId old);
  /// The block of a value that is split only for this reader.
  ValueId entered(ValueId old, std::size_t axis);
  /// The block of a value that is the same on all ranks and broadcasts to `whole`, which is split
  /// along `axis`; nothing where it has something for each row of axis 0.
  std::optional<ValueId> block_for(ValueId old, const Shape& whole, std::size_t axis);
  bool is_uniform(ValueId old) const { return uniform_[static_cast<std::size_t>(old.index)]; }

  Graph finish();

 private:
  struct Waiting {
    NodeId node;
    SplitValue logits;
  };
  using Key = std::pair<std::int32_t, std::size_t>;  // value, axis

  const Graph& from_;
  const std::vector<bool> uniform_;
  GraphRewrite to_;
  SampleExchange exchange_;
  std::map<std::int32_t, SplitValue> splits_;
  std::map<std::int32_t, bool> joined_;
  std::map<std::int32_t, Waiting> waiting_;
  std::map<std::int32_t, ValueId> gathered_;
  std::map<Key, ValueId> entered_, blocks_;
};

}  // namespace tandem
