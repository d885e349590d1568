// y = of n equal parts along axis 0 of every rank's x the one that has this rank's number, in the
// order of the ranks: part p of x goes to rank p.
#include "engine/graph/builder.h"
#include "engine/operators/checks.h"
#include "engine/operators/collectives/collective.h"

namespace tandem::operators {
namespace {

std::vector<TensorType> infer(const NodeView& node) {
  const std::int64_t ranks = require_ranks(node);
  const TensorType& x = node.input(0);
  if (x.rank() == 0 || x.shape[0] % ranks != 0) {
    node.fail("rows that ranks cannot share equally", "a multiple of " + std::to_string(ranks),
              to_string(x));
  }
  return {x};
}

// What has come goes back to where it was.
Gradients gradient(GradientContext& c) {
  return {
      c.g.add_node(all_to_all_name, {c.dy[0]}, {{"ranks", c.node.attributes.integer("ranks")}})};
}

}  // namespace

Operator all_to_all() {
  return {.name = all_to_all_name,
          .role = Role::collective,
          .inputs = {{"x"}},
          .outputs = {{"y"}},
          .attributes = {ranks_attribute()},
          .infer = infer,
          .gradient = gradient,
          .engine_only = true};
}

}  // namespace tandem::operators
