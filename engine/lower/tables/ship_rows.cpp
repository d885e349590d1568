// Lookups whose table lives on the host and whose readers are elsewhere, where `ship` says rows:
// the rows that occur cross once each, with an index into them, instead of one row per id; the
// gradient is summed by row where it is made, and comes back the same way.
//
//   host:    unique, count, inverse = UniqueIndices(ids);  rows = GatherRows(table, unique, count)
//   device:  y = Gather(rows, inverse);  d_rows = GatherGrad(dy, inverse)
//   host:    RowsUpdate(table, unique, count, d_rows), each row with one position
//
// With a look-ahead most rows have crossed in the step before: rows_ahead.h.
#include <algorithm>
#include <numeric>

#include "engine/lower/tables/rows_ahead.h"
#include "engine/operators/tables/rows.h"
#include "engine/operators/tables/table_nodes.h"

namespace tandem {
namespace {

class ShipRows {
 public:
  explicit ShipRows(PlacedEdit& edit) : edit_(edit), ahead_(edit) {}

  void run() {
    const std::size_t count = edit_.graph().nodes.size(), states = edit_.graph().states.size();
    for (std::size_t s = 0; s < states; ++s) {
      // A weight on another device than the master is read there instead.
      const PlacedState& place = edit_.place(s);
      if (place.ship != Ship::rows || place.state != host || place.param != host) continue;
      const State& state = edit_.graph().states[s];
      const ValueId table = state.initial, updated = state.final;
      for (NodeId reader : edit_.readers(table)) try_lookup(reader, s);
      const NodeId update = edit_.graph().value(updated).producer;
      if (update && update.index < static_cast<std::int32_t>(count)) try_update(update);
    }
  }

 private:
  struct Groups {
    NodeId node;  // UniqueIndices
    std::int64_t ids = 0, rows = 0;
    ValueId output(const Graph& graph, std::size_t i) const { return graph.node(node).outputs[i]; }
  };

  // The node that groups exactly these ids for a table of `rows` rows; made where there is none.
  Groups groups_of(ValueId ids, std::int64_t rows, NodeId like) {
    const Graph& graph = edit_.graph();
    Groups groups{{}, graph.type(ids).elements(), rows};
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      if (node.op->role != Role::id_groups) continue;
      if (node.attributes.integer("rows") != rows || node.inputs != std::vector{ids}) continue;
      groups.node = NodeId{static_cast<std::int32_t>(n)};
      edit_.set_key(groups.node, -1);  // ids are known before the step begins
      break;
    }
    if (!groups.node) {
      groups.node = edit_.add("UniqueIndices", {ids}, {{"rows", rows}}, like);
    }
    edit_.set_device(groups.node, host);
    // It replaces the lookup, which would report ids that name no row.
    edit_.graph().node(groups.node).attributes.set("quiet", std::int64_t{0});
    return groups;
  }

  void try_lookup(NodeId id, std::size_t state) {
    const Node node = edit_.graph().node(id);
    const ValueId table = edit_.graph().states[state].initial;
    if (!looks_up_rows(node) || !(node.inputs[0] == table)) return;
    if (edit_.device(id) != host) return;
    const int device = device_of_readers(node.outputs[0]);
    if (device < 0) return;
    const TensorType type = edit_.graph().type(table), y = edit_.graph().type(node.outputs[0]);
    if (edit_.graph().type(node.inputs[1]).elements() == 0) return;
    const Groups groups = groups_of(node.inputs[1], type.shape[0], id);
    const ValueId rows = is_ahead(state, node.inputs[1])
                             ? ahead_.lookup({id, state, groups.node, device})
                             : looked_up(id, table, groups, device);
    const NodeId shaped =
        edit_.add("Reshape", {widened(rows, y.dtype, device, id)}, {{"shape", y.shape}}, id);
    edit_.set_device(shaped, device);
    edit_.replace(node.outputs[0], edit_.graph().node(shaped).outputs[0]);
  }

  bool is_ahead(std::size_t state, ValueId ids) {
    if (!edit_.context().options.rows_ahead || edit_.place(state).rows_ahead == 0) return false;
    const std::optional<std::string> reason = ahead_.refusal(state, ids);
    if (!reason) return true;
    const State& table = edit_.graph().states[state];
    edit_.add_note(not_ahead_note(table.path.empty() ? table.name : table.path) + *reason);
    return false;
  }

  // The looked-up rows on the device, one for each id.
  ValueId looked_up(NodeId id, ValueId table, const Groups& groups, int device) {
    const ValueId count = groups.output(edit_.graph(), UniqueOutputs::count);
    const NodeId gather = edit_.add(
        "GatherRows", {table, groups.output(edit_.graph(), UniqueOutputs::unique), count}, {}, id);
    const ValueId rows = copy_rows(edit_, edit_.graph().node(gather).outputs[0], count, device, id);
    const NodeId lookup =
        edit_.add("Gather", {rows, groups.output(edit_.graph(), UniqueOutputs::inverse)},
                  {{"axis", std::int64_t{0}}}, id);
    edit_.set_device(lookup, device);
    return edit_.graph().node(lookup).outputs[0];
  }

  // The rows in the lookup's type: they cross in the table's.
  ValueId widened(ValueId rows, DType to, int device, NodeId like) {
    if (edit_.graph().type(rows).dtype == to) return rows;
    const NodeId cast = edit_.add("Cast", {rows}, {{"to", std::string(name_of(to))}}, like);
    edit_.set_device(cast, device);
    return edit_.graph().node(cast).outputs[0];
  }

  // The accelerator on which all readers are, or -1.
  int device_of_readers(ValueId y) const {
    if (edit_.is_kept(y) || edit_.readers(y).empty()) return -1;
    int device = -1;
    for (NodeId reader : edit_.readers(y)) {
      const int own = edit_.device(reader);
      if (own == host || (device >= 0 && own != device)) return -1;
      device = own;
    }
    return device;
  }

  void try_update(NodeId id) {
    const Node node = edit_.graph().node(id);
    if (node.op->role != Role::rows_update) return;
    // Sums of rows cross as they are, in both directions: fewer bytes than the rows.
    if (!node.attributes.integers("bags").empty()) return;
    const RowsOperands at(node);
    if (node.inputs.size() != at.gradients() + 1) return;  // several lookups: rows as they are
    const NodeId unique = edit_.graph().value(node.inputs[at.unique()]).producer;
    if (!unique || edit_.graph().node(unique).op->role != Role::id_groups) return;
    const ValueId d_rows = summed(unique, node.inputs[at.gradients()], node.inputs[0]);
    if (!d_rows) return;
    replace_groups(id, at.order(), at.offsets(), at.gradients(), d_rows);
    // The norm reads the same gradient.
    for (NodeId reader : edit_.readers(node.inputs[at.order()])) {
      const Node& other = edit_.graph().node(reader);
      if (other.op->role != Role::rows_norm || other.inputs.size() != 4) continue;
      if (!other.attributes.integers("bags").empty()) continue;
      if (other.inputs[3] == node.inputs[at.gradients()]) replace_groups(reader, 0, 1, 3, d_rows);
    }
  }

  // The gradient of each row that occurs, on the host; -1 where dy is made there.
  ValueId summed(NodeId unique, ValueId dy, ValueId table) {
    const NodeId producer = edit_.graph().value(dy).producer;
    if (!producer || edit_.device(producer) == host) return {};
    const Node groups = edit_.graph().node(unique);
    Shape shape = edit_.graph().type(table).shape;
    Shape flat = shape;
    flat[0] = edit_.graph().type(groups.inputs[0]).elements();
    shape[0] = edit_.graph().type(groups.outputs[UniqueOutputs::unique]).elements();
    const int device = edit_.device(producer);
    edit_.set_device(unique, host);  // also for ids from elsewhere: the host counts a copy's rows
    const NodeId reshape = edit_.add("Reshape", {dy}, {{"shape", flat}}, producer);
    const NodeId sum =
        edit_.add("GatherGrad",
                  {edit_.graph().node(reshape).outputs[0], groups.outputs[UniqueOutputs::inverse]},
                  {{"axis", std::int64_t{0}}, {"shape", shape}}, producer);
    edit_.set_device(reshape, device);
    edit_.set_device(sum, device);
    return copy_rows(edit_, edit_.graph().node(sum).outputs[0],
                     groups.outputs[UniqueOutputs::count], host, sum);
  }

  // Makes the node read d_rows, where the only position of row k is k.
  void replace_groups(NodeId id, std::size_t order, std::size_t offsets, std::size_t gradient,
                      ValueId d_rows) {
    const std::int64_t rows = edit_.graph().type(d_rows).shape[0];
    const auto [iota, longer] = identity(rows);
    Node& node = edit_.graph().node(id);
    node.inputs[order] = iota;
    node.inputs[offsets] = longer;
    node.inputs[gradient] = d_rows;
  }

  // Constants with 0 to rows - 1, and with 0 to rows.
  std::pair<ValueId, ValueId> identity(std::int64_t rows) {
    for (const auto& [known, values] : identities_) {
      if (known == rows) return values;
    }
    const auto constant = [&](std::int64_t count) {
      std::vector<std::int32_t> values(static_cast<std::size_t>(count));
      std::iota(values.begin(), values.end(), 0);
      Value value;
      value.name = "rows.identity/" + std::to_string(count);
      value.type = {DType::int32, {count}};
      value.kind = ValueKind::constant;
      value.constant =
          std::make_shared<HostTensor>(HostTensor::from<std::int32_t>({count}, values));
      return edit_.add_value(std::move(value));
    };
    const std::pair<ValueId, ValueId> values{constant(rows), constant(rows + 1)};
    identities_.emplace_back(rows, values);
    return values;
  }

  PlacedEdit& edit_;
  RowsAhead ahead_;
  std::vector<std::pair<std::int64_t, std::pair<ValueId, ValueId>>> identities_;
};

}  // namespace

PlacedGraph ship_rows(PlacedGraph placed, const LowerContext& context) {
  PlacedEdit edit(std::move(placed), context);
  ShipRows(edit).run();
  return edit.finish();
}

}  // namespace tandem
