// An optimizer's step from a row-sparse gradient: g[row] = the sum of dy over the row's positions,
// then the kind's formula on that row of master and states, in one pass. A split master is joined,
// changed as float32 and split again.
#include "engine/operators/operator.h"
#include "engine/operators/tables/rows.h"
#include "engine/operators/update.h"

namespace tandem::operators {
namespace {

// The float32 type of a split master: the bfloat16 half at input 0 and the tail, which are checked.
TensorType split_master(const NodeView& view, const UpdateKind& kind, std::size_t tail) {
  require_dtype(view, 0, DType::bfloat16);
  const TensorType master{DType::float32, view.input(0).shape};
  if (!view.has_input(tail)) view.fail("the tail is missing", "an int16", "none");
  require_type(view, tail, {DType::int16, master.shape});
  require_rows(view, kind, master);
  return master;
}

std::vector<TensorType> infer_rows_update(const NodeView& view) {
  const UpdateKind* kind = find_update_kind(view.attributes().text("op"));
  if (kind == nullptr) {
    view.fail("op is no update", "an update's name", view.attributes().text("op"));
  }
  if (kind->whole_tensor) {
    view.fail("op cannot update single rows", "an update of single elements or rows", kind->op);
  }
  require_flag(view, "lazy");
  require_flag(view, "split");
  kind->require_settings(view);
  const RowsOperands at(view.node);
  if (view.input_count() <= at.gradients()) {
    view.fail("operands are missing", "at least " + std::to_string(at.gradients() + 1) + " inputs",
              std::to_string(view.input_count()));
  }
  const TensorType master =
      at.split ? split_master(view, *kind, at.tail()) : require_master(view, *kind, 0);
  if (master.rank() < 1) view.fail("a scalar has no rows", "a table", to_string(master));
  const std::int64_t ids = view.input(at.order()).elements();
  const std::int64_t capacity = std::min(ids, master.shape[0]);
  require_type(view, at.unique(), {DType::int64, {capacity}});
  require_type(view, at.order(), {DType::int32, {ids}});
  require_type(view, at.offsets(), {DType::int32, {capacity + 1}});
  require_type(view, at.count(), {DType::int32, {}});
  require_update_scalars(view, at.scalars());
  const std::int64_t columns = element_count(Shape(master.shape.begin() + 1, master.shape.end()));
  require_lookup_gradients(view, at.gradients(), ids, columns);
  std::vector<TensorType> outputs{master};
  add_state_outputs(view, *kind, master, 1, outputs);
  if (at.split) {
    outputs[0] = view.input(0);
    outputs.push_back(view.input(at.tail()));
  }
  return outputs;
}

// Rows that occur are read and written once: at most as many as there are ids.
Cost rows_update_cost(const NodeView& view) {
  const RowsOperands at(view.node);
  const TensorType& master = view.input(0);
  const double rows = view.attributes().flag("lazy") ? element_number(view.input(at.unique()))
                                                     : static_cast<double>(master.shape[0]);
  const double columns = element_number(master) / static_cast<double>(master.shape[0]);
  double bytes = 0, flops = update_kind(view.node).flops * rows * columns;
  for (std::size_t i = 0; i <= at.states; ++i) {
    if (!view.has_input(i)) continue;
    bytes += 2 * rows * static_cast<double>(view.input(i).bytes()) /
             static_cast<double>(master.shape[0]);
  }
  for (std::size_t i = at.unique(); i < view.input_count(); ++i) {
    bytes += static_cast<double>(view.input(i).bytes());
  }
  flops += element_number(view.input(at.order())) * columns;
  return {flops, bytes};
}

// Master and states, a tail last, come first on both sides.
std::vector<Alias> aliases(const Node& node) {
  std::vector<Alias> list;
  for (int k = 0; k <= static_cast<int>(RowsOperands(node).states); ++k) list.push_back({k, k});
  return list;
}

}  // namespace

// `lazy`: rows without ids stay as they are; else they take the step of a gradient of zeros.
Operator rows_update() {
  std::vector<AttributeSpec> attributes{
      {"op", std::string{}, true}, {"lazy", std::int64_t{1}}, {"split", std::int64_t{0}}};
  for (AttributeSpec& spec : lookup_attributes()) attributes.push_back(std::move(spec));
  for (AttributeSpec& spec : all_update_attributes(true)) attributes.push_back(std::move(spec));
  return {.name = "RowsUpdate",
          .role = Role::rows_update,
          .inputs = {{.name = "operands", .optional = true, .variadic = true}},
          .outputs = {{.name = "updated", .variadic = true}},
          .attributes = std::move(attributes),
          .infer = infer_rows_update,
          .not_differentiable = not_differentiable_update,
          .cost = rows_update_cost,
          .node_aliases = aliases,
          .engine_only = true};
}

}  // namespace tandem::operators
