#include "engine/operators/collectives/collective.h"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "engine/graph/builder.h"
#include "engine/operators/checks.h"

namespace tandem {

namespace {

/// In the order of CollectiveKind.
constexpr const char* operator_names[] = {all_reduce_name, all_gather_name, reduce_scatter_name,
                                          all_to_all_name, exchange_rows_name};

// The longer side: what is gathered or scattered; for exchanged rows what is filled of it.
double carried_bytes(const Graph& graph, const Node& node, CollectiveKind kind) {
  const auto bytes_of = [&](const std::vector<ValueId>& values) {
    double bytes = 0;
    for (ValueId value : values) bytes += static_cast<double>(graph.type(value).bytes());
    return bytes;
  };
  if (kind == CollectiveKind::exchange_rows) {
    const auto [shorter, longer] =
        std::minmax({bytes_of({node.inputs[0]}), bytes_of(node.outputs)});
    return std::max(shorter, longer * node.attributes.number("filled"));
  }
  return bytes_of(kind == CollectiveKind::all_gather ? node.outputs : node.inputs);
}

}  // namespace

CollectiveKind collective_kind(const Node& node) {
  if (node.op->name == gather_states_name) return CollectiveKind::all_gather;
  const auto name = std::find(std::begin(operator_names), std::end(operator_names), node.op->name);
  assert(name != std::end(operator_names));
  return static_cast<CollectiveKind>(name - std::begin(operator_names));
}

std::vector<ValueId> given_values(const Node& node) {
  if (node.op->name != gather_states_name) return node.inputs;
  std::vector<ValueId> parts;
  for (std::size_t i = 1; i < node.inputs.size(); i += 2) parts.push_back(node.inputs[i]);
  return parts;
}

CollectiveWork collective_work(const Graph& graph, const Node& node) {
  const CollectiveKind kind = collective_kind(node);
  return {kind, static_cast<double>(node.attributes.integer("ranks")),
          carried_bytes(graph, node, kind)};
}

namespace operators {

std::int64_t require_ranks(const NodeView& node) {
  const std::int64_t ranks = node.attributes().integer("ranks");
  if (ranks < 1) node.fail("attribute 'ranks'", "at least 1", std::to_string(ranks));
  return ranks;
}

std::int64_t require_equal_parts(const NodeView& node) {
  const std::int64_t ranks = require_ranks(node);
  const TensorType& x = node.input(0);
  if (x.rank() == 0 || x.shape[0] % ranks != 0) {
    node.fail("rows that ranks cannot share equally", "a multiple of " + std::to_string(ranks),
              to_string(x));
  }
  return ranks;
}

Attributes same_ranks(const GradientContext& context) {
  return {{"ranks", context.node.attributes.integer("ranks")}};
}

void require_reduction(const NodeView& node) {
  const std::string& reduction = node.attributes().text("reduction");
  const bool is_extreme = reduction == maximum_reduction || reduction == "minimum";
  if (reduction != sum_reduction && reduction != "mean" && !is_extreme) {
    node.fail("attribute 'reduction'", "sum, mean, maximum or minimum", reduction);
  }
  const DType dtype = node.input(0).dtype;
  if (reduction == "mean" && !is_float(dtype))
    node.fail("the mean of integers", "a float type", std::string(name_of(dtype)));
  if (dtype == DType::boolean && !is_extreme)
    node.fail("the " + reduction + " of truth values", "maximum or minimum", reduction);
}

void require_sum_for_gradient(const GradientContext& context) {
  const std::string& reduction = context.node.attributes.text("reduction");
  if (reduction == sum_reduction) return;
  NodeView{context.g.graph(), context.node}.fail("only a sum over ranks has a gradient",
                                                 sum_reduction, reduction);
}

}  // namespace operators
}  // namespace tandem
