// Appends update nodes to a training graph: one per parameter, with its states and step scalars.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/gradient/row_gradient.h"
#include "engine/graph/builder.h"
#include "engine/operators/update_kind.h"
#include "engine/optimizers/optimizer.h"

namespace tandem {

/// Values that all updates of a graph share.
struct UpdateScalars {
  ValueId step;   // int64 scalar, from 1
  ValueId scale;  // float32 scalar that multiplies every gradient
  ValueId skip;   // bool scalar: leave everything as it is
};

/// What one update reads and writes.
struct UpdateRequest {
  State parameter;  // a copy: adding states moves the graph's vectors
  ValueId gradient;
  std::optional<RowGradient> rows;  // the same gradient, where only lookups make it
  ValueId
      touched;  // marks of the rows of `gradient` that count, where several micro-batches made it
  bool keeps_others = false;  // rows that the gradient's rows or marks leave out stay as they are
  /// Ranks shard its states (ZeRO): each updates a part of the parameter.
  bool shares_states = false;
  ValueId lr;      // float32 scalar
  int group = -1;  // index of the group in optimizer.groups that gives its options
  OptimizerOptions options;
};

/// Adds updates to one graph. Ids of lookups are grouped once for all tables with equally many
/// rows.
class Updates {
 public:
  explicit Updates(GraphBuilder& g) : g_(g) {}

  /// The norm's part of this gradient: its sum of squares.
  ValueId sum_of_squares(const UpdateRequest& request);
  /// The parts of all ranks, in the shape of the parameter.
  using Gather = std::function<ValueId(ValueId part)>;
  /// Adds the states ("NAME/exp_avg") and the update, and writes the new values back, except for
  /// the new master of a flat part, which it returns. Nothing is returned where the update of a
  /// part has already written the whole parameter. `gather` is for parts.
  ValueId add(const UpdateRequest& request, const UpdateScalars& scalars,
              const Gather& gather = {});
  /// Adds only the update node `op`, over the states of its kind (-1: its settings do without), and
  /// returns its results for master and states. `lazy`: rows without a gradient stay as they are.
  std::vector<ValueId> add_node(const UpdateRequest& request, const std::string& op,
                                Attributes settings, const std::vector<ValueId>& states, bool lazy,
                                const UpdateScalars& scalars);

 private:
  struct Grouped {
    std::vector<ValueId> ids;
    std::int64_t rows = 0;
    std::vector<ValueId> outputs;  // UniqueOutputs
  };
  /// Adds the operators of a composed kind, in the place of an update node.
  ValueId compose(const UpdateRequest& request, const UpdateKind& kind, const Attributes& settings,
                  const std::vector<ValueId>& states, const UpdateScalars& scalars,
                  const Gather& gather);
  bool is_by_rows(const UpdateRequest& request) const { return request.rows || request.touched; }
  ValueId own_sum_of_squares(const UpdateRequest& request);
  /// The groups of a request by rows.
  const std::vector<ValueId>& groups_of(const UpdateRequest& request);
  /// Appends the gradients of a request by rows to a node's inputs, and describes their layout.
  static void append_gradients(const UpdateRequest& request, std::vector<ValueId>& inputs,
                               Attributes& attributes);

  GraphBuilder& g_;
  std::vector<Grouped> grouped_;
};

/// The scope for the update of a parameter.
inline GraphBuilder::Scope update_scope(const State& parameter) {
  return {"optimizer." + parameter.name, Phase::update, {}};
}

/// An optimizer state "PARAMETER/name"; for a table's cache, the cache of the table's state.
/// Without a start.
State state_of(const State& parameter, const std::string& name);

/// If a state has a row for each row of the parameter's part, makes it a part of its own whole. Of
/// a flat part: an element for each `each` of its elements.
void share_like(State& state, const State& parameter, std::int64_t each = 1);

/// A state that belongs to a parameter: filled with `start`, of the parameter's shape in float32
/// unless given. `each`: as for share_like.
ValueId add_moment(GraphBuilder& g, const State& parameter, const std::string& name,
                   double start = 0, std::optional<TensorType> type = std::nullopt,
                   std::int64_t each = 1);

}  // namespace tandem
