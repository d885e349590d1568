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

FieldTypes guessed_fields(const RunConfig& config, const Graph& forward) {
  FieldTypes fields;
  for (const NamedValue& input : forward.inputs) fields[input.name] = forward.type(input.value);
  for (const LossTerm& term : config.loss.terms) {
    const NamedValue* output = forward.find_output(term.logits);
    const ValueId logits = output ? output->value : forward.find_value(term.logits);
    if (!logits || term.labels.empty() || fields.contains(term.labels)) continue;
    TensorType type = forward.type(logits);
    if (term.kind == LossKind::softmax_cross_entropy && type.rank() > 1) {
      type.dtype = DType::int64;
      type.shape.pop_back();
    }
    fields[term.labels] = type;
  }
  return fields;
}

Graph sample_training_graph(const Engine& engine, const RunConfig& config, const Graph& forward) {
  TrainingRequest request;
  request.config = &config;
  request.samples = {config.pass_size(), config.batch_size};
  request.kind = request.samples.whole() ? PassKind::whole : PassKind::last;
  request.fields = guessed_fields(config, forward);
  request.evaluate = engine.evaluate;
  const bool has_loss = !config.loss.terms.empty();
  return build_training_graph(engine.operators,
                              has_loss ? forward : with_sample_loss(engine, forward), request)
      .graph;
}

}  // namespace tandem::api
