// y = the rows that all ranks have for this one: the first sent[0] rows of x go to rank 0, the next
// sent[1] to rank 1, ...; received[0] rows of rank 0 come first in y, then received[1] of rank 1,
// ... The rest of y, which has room for `rows`, is filled with absent ids where y has integers
// (engine/operators/tables/rows.h); else it may hold anything, and readers that use such ids do not
// read it. `received` is what the other ranks send: AllToAll of `sent`.
// `filled`: about the fraction of the longer one of x and y that has rows; only for estimates.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/collectives/collective.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer_exchange_rows(const NodeView& node) {
  const std::int64_t ranks = require_ranks(node), rows = node.attributes().integer("rows");
  if (rows < 0) node.fail("attribute 'rows'", "at least 0", std::to_string(rows));
  TensorType type = node.input(0);
  if (type.rank() == 0) node.fail("a scalar has no rows to exchange");
  const double filled = node.attributes().number("filled");
  if (!(filled >= 0 && filled <= 1))
    node.fail("attribute 'filled'", "0 to 1", std::to_string(filled));
  for (const std::size_t i : {1u, 2u}) {
    require_dtype(node, i, DType::int32);
    require_shape(node, i, {ranks});
  }
  type.shape[0] = rows;
  return {type};
}

// The rows go back to where they were; those that were not sent get nothing.
Gradients exchange_rows_gradient(GradientContext& c) {
  return {c.g.add_node(exchange_rows_name, {c.dy[0], c.x(2), c.x(1)},
                       {{"ranks", c.node.attributes.integer("ranks")},
                        {"rows", c.g.shape(c.x(0))[0]},
                        {"filled", c.node.attributes.number("filled")}}),
          {},
          {}};
}

}  // namespace

Operator exchange_rows() {
  return {.name = exchange_rows_name,
          .role = Role::collective,
          .inputs = {{"x"}, {"sent"}, {"received"}},
          .outputs = {{"y"}},
          .attributes = {ranks_attribute(), {"rows", std::int64_t{0}, true}, {"filled", 1.0}},
          .infer = infer_exchange_rows,
          .gradient = exchange_rows_gradient,
          .drops_elements = true,
          .engine_only = true};
}

}  // namespace tandem::operators
