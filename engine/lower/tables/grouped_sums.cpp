// The gradient of rows that are looked up by their places in groups of ids (UniqueIndices), and
// that goes to the ranks that have the rows, is a sum for each group:
//   GatherGrad(dy, inverse)   becomes   RowsSum(order, offsets, count, dy)
// and so does EmbeddingBagGrad. Each row is then written once, not added to once for each id.
#include <algorithm>
#include <map>

#include "engine/lower/placed_graph.h"
#include "engine/operators/collectives/collective.h"
#include "engine/operators/tables/rows.h"

namespace tandem {
namespace {

// The node that groups ids, where `ids` are exactly the places in its groups; else -1.
NodeId groups_of(const Graph& graph, ValueId ids) {
  const ValueId inverse = behind_views(graph, ids);
  const NodeId producer = graph.value(inverse).producer;
  const bool is_inverse = producer && graph.node(producer).op->role == Role::id_groups &&
                          graph.value(inverse).output_index == UniqueOutputs::inverse;
  const bool is_all = graph.type(ids).elements() == graph.type(inverse).elements();
  return is_inverse && is_all ? producer : NodeId{};
}

class GroupedSums {
 public:
  explicit GroupedSums(PlacedEdit& edit) : edit_(edit) {}

  void try_gather(NodeId id) {
    if (edit_.graph().node(id).attributes.integer("axis") == 0) try_sum(id, {});
  }
  void try_bag(NodeId id) {
    const Node& node = edit_.graph().node(id);
    const bool is_weighted = node.inputs.size() > 2 && node.inputs[2];
    const std::int64_t length = edit_.graph().type(node.inputs[1]).shape.back();
    try_sum(id, {{"bags", Ints{length}}, {"weighted", Ints{is_weighted}}});
  }

 private:
  void try_sum(NodeId id, Attributes attributes) {
    const Node node = edit_.graph().node(id);
    const NodeId groups = groups_of(edit_.graph(), node.inputs[1]);
    if (!groups || edit_.device(groups) != edit_.device(id)) return;
    const TensorType type = edit_.graph().type(node.outputs[0]);
    if (!is_sent_alone(node.outputs[0])) return;
    if (group_count(groups) != type.shape[0]) return;
    const auto [found, is_new] = all_outputs_.try_emplace(groups.index, groups);
    if (is_new) found->second = with_all_outputs(groups);
    const std::vector<ValueId> of = edit_.graph().node(found->second).outputs;
    std::vector<ValueId> inputs{of[UniqueOutputs::order], of[UniqueOutputs::offsets],
                                of[UniqueOutputs::count]};
    for (const std::size_t operand : {0u, 2u}) {  // dy, weights
      if (operand < node.inputs.size() && node.inputs[operand])
        inputs.push_back(node.inputs[operand]);
    }
    attributes.set("shape", type.shape);
    const NodeId sum = edit_.add("RowsSum", std::move(inputs), std::move(attributes), id);
    if (edit_.stays_if_fast(sum))
      edit_.replace(node.outputs[0], edit_.graph().node(sum).outputs[0]);
  }

  // Whether the rows are only sent to the ranks that keep them, which take those that occur.
  bool is_sent_alone(ValueId rows) const {
    const std::vector<NodeId>& readers = edit_.readers(rows);
    return !edit_.is_kept(rows) && std::all_of(readers.begin(), readers.end(), [&](NodeId id) {
      return edit_.graph().node(id).op->name == exchange_rows_name;
    });
  }

  // The most groups that there can be: each id may be in a group of its own.
  std::int64_t group_count(NodeId groups) const {
    const Node& node = edit_.graph().node(groups);
    const std::int64_t ids = edit_.graph().type(node.outputs[UniqueOutputs::inverse]).elements();
    return std::min(ids, node.attributes.integer("rows"));
  }

  // The node with all its outputs, made anew where it lacks outputs that nothing has read so far.
  NodeId with_all_outputs(NodeId groups) {
    const Node node = edit_.graph().node(groups);
    if (std::all_of(node.outputs.begin(), node.outputs.end(), [](ValueId v) { return bool(v); }))
      return groups;
    const NodeId whole = edit_.add(node.op->name, node.inputs, node.attributes, groups);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i]) edit_.replace(node.outputs[i], edit_.graph().node(whole).outputs[i]);
    }
    return whole;
  }

  PlacedEdit& edit_;
  std::map<std::int32_t, NodeId> all_outputs_;  // by the node that was there before
};

}  // namespace

PlacedGraph grouped_sums(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  GroupedSums sums(edit);
  for (const NodeId id : edit.nodes()) {
    const Role role = edit.graph().node(id).op->role;
    if (role == Role::lookup_gradient) sums.try_gather(id);
    if (role == Role::embedding_bag_gradient) sums.try_bag(id);
  }
  return edit.finish();
}

}  // namespace tandem
