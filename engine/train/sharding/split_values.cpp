#include "engine/train/sharding/split_values.h"

#include "engine/train/sharding/split_axes.h"

namespace tandem {

SplitValues::SplitValues(const Graph& from, const OperatorSet& operators, const RankShares& ranks)
    : from_(from),
      uniform_(uniform_values(from)),
      to_(from, operators),
      exchange_(to_.builder(), ranks) {}

const SplitValue* SplitValues::split(ValueId old) const {
  const auto found = splits_.find(old.index);
  return old && found != splits_.end() ? &found->second : nullptr;
}

void SplitValues::set_waiting(ValueId old, NodeId node, const SplitValue& logits) {
  waiting_.emplace(old.index, Waiting{node, logits});
}

const SplitValue* SplitValues::waiting(ValueId old) const {
  const auto found = waiting_.find(old.index);
  return found == waiting_.end() ? nullptr : &found->second.logits;
}

ValueId SplitValues::own(ValueId old) {
  if (!old) return {};
  if (const auto found = waiting_.find(old.index); found != waiting_.end()) {
    const NodeId node = found->second.node;
    waiting_.erase(found);
    copy(node);
  } else if (const SplitValue* value = split(old); value != nullptr && !joined_[old.index]) {
    joined_[old.index] = true;
    const GraphBuilder::Scope scope = g().scope();
    to_.scope_of(from_.value(old).producer);
    to_.replace(old, exchange_.joined(*value, type(old).shape[0]));
    g().set_scope(scope);
  }
  return to_.mapped(old);
}

void SplitValues::copy(NodeId id) {
  const GraphBuilder::Scope scope = g().scope();
  for (const ValueId input : from_.node(id).inputs) own(input);
  to_.copy(id);
  g().set_scope(scope);
}

ValueId SplitValues::gathered(ValueId old) {
  ValueId& known = gathered_[old.index];
  if (!known) known = exchange_.gathered(own(old));
  return known;
}

ValueId SplitValues::entered(ValueId old, std::size_t axis) {
  ValueId& known = entered_[{old.index, axis}];
  if (!known) known = exchange_.split(own(old), axis).value;
  return known;
}

std::optional<ValueId> SplitValues::block_for(ValueId old, const Shape& whole, std::size_t axis) {
  const Shape& shape = type(old).shape;
  const std::size_t missing = whole.size() - shape.size();
  if (!is_uniform(old) || (missing == 0 && shape[0] != 1)) return std::nullopt;
  if (axis < missing || shape[axis - missing] == 1) return to_.mapped(old);
  ValueId& known = blocks_[{old.index, axis - missing}];
  if (!known) known = exchange_.own_block(to_.mapped(old), axis - missing);
  return known;
}

Graph SplitValues::finish() {
  for (const NamedValue& output : from_.outputs) own(output.value);
  for (const State& state : from_.states) own(state.final);
  return to_.finish();
}

}  // namespace tandem
