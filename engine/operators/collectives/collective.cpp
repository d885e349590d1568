#include "engine/operators/collectives/collective.h"

#include "engine/graph/builder.h"
#include "engine/operators/checks.h"

namespace tandem {

CollectiveKind collective_kind(const Node& node) {
  if (node.op->name == all_gather_name) return CollectiveKind::all_gather;
  if (node.op->name == reduce_scatter_name) return CollectiveKind::reduce_scatter;
  return CollectiveKind::all_reduce;
}

RingTraffic ring_traffic(const Graph& graph, const Node& node) {
  const auto ranks = static_cast<double>(node.attributes.integer("ranks"));
  const CollectiveKind kind = collective_kind(node);
  // The longer side: what is gathered, or what is scattered.
  double bytes = 0;
  for (ValueId value : kind == CollectiveKind::all_gather ? node.outputs : node.inputs)
    bytes += static_cast<double>(graph.type(value).bytes());
  const double ways = kind == CollectiveKind::all_reduce ? 2 : 1;
  return {ways * (ranks - 1) / ranks * bytes, ways * (ranks - 1)};
}

namespace operators {

std::int64_t require_ranks(const NodeView& node) {
  const std::int64_t ranks = node.attributes().integer("ranks");
  if (ranks < 1) node.fail("attribute 'ranks'", "at least 1", std::to_string(ranks));
  return ranks;
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
