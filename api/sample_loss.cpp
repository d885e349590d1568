#include "api/sample_loss.h"

#include "engine/graph/builder.h"
#include "engine/graph/error.h"

namespace tandem::api {

Graph with_sample_loss(const Engine& engine, const Graph& forward) {
  GraphBuilder g(engine.operators, forward);
  Graph& graph = g.graph();
  ValueId loss;
  for (const NamedValue& output : graph.outputs) {
    if (!loss && is_float(graph.type(output.value).dtype)) loss = output.value;
  }
  if (!loss) {
    Diagnostic d;
    d.message = "the model has no floating-point output to differentiate";
    throw Error(ErrorKind::usage, std::move(d));
  }
  g.set_scope({"loss.total", Phase::forward, {}});
  if (graph.type(loss).elements() != 1) {
    Ints axes;
    for (std::size_t i = 0; i < graph.type(loss).rank(); ++i)
      axes.push_back(static_cast<std::int64_t>(i));
    loss = g.reduce_mean(loss, axes, false);
  }
  graph.outputs = {{"loss", loss}};
  return g.finish();
}

}  // namespace tandem::api
