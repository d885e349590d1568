#include "api/model/sample_loss.h"

#include "engine/graph/builder.h"
#include "engine/graph/error.h"
#include "engine/losses/loss.h"
#include "engine/train/programs/freeze_rules.h"

namespace tandem::api {

Graph with_sample_loss(const Engine& engine, const Graph& forward) {
  GraphBuilder g(engine.operators, forward);
  Graph& graph = g.graph();
  ValueId loss;
  for (const NamedValue& output : graph.outputs) {
    if (!loss && is_float(graph.type(output.value).dtype)) loss = output.value;
  }
  if (!loss) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "the model has no floating-point output to differentiate"});
  }
  g.set_scope({"loss.total", tandem::Phase::forward, {}});
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
    const NamedValue* output = forward.find_output(term.values[0]);
    const ValueId value = output ? output->value : forward.find_value(term.values[0]);
    if (!value) continue;
    const TensorType type = forward.type(value);
    const TensorType one_a_sample{
        type.dtype, Shape(type.shape.begin(), type.shape.begin() + (type.rank() > 0))};
    TensorType labels = term.kind->labels.form == LabelForm::signs ? one_a_sample : type;
    if (term.kind->labels.form == LabelForm::classes && type.rank() > 1) {
      labels.dtype = DType::int64;
      labels.shape.pop_back();
    }
    if (term.kind->labels.form == LabelForm::sequences)
      labels = {DType::int64, {one_a_sample.shape.empty() ? 1 : one_a_sample.shape[0], 1}};
    if (!term.labels.empty()) fields.emplace(term.labels, labels);
    for (const std::string& name : term.other_fields) {
      if (!name.empty()) fields.emplace(name, TensorType{DType::int64, one_a_sample.shape});
    }
    if (!term.sample_weights.empty()) fields.emplace(term.sample_weights, one_a_sample);
  }
  return fields;
}

Graph sample_training_graph(const Engine& engine, const RunConfig& config, const Graph& forward,
                            std::shared_ptr<const TrainingAlgorithm> algorithm) {
  TrainingRequest request;
  request.config = &config;
  request.samples = {config.micro_batch_size(), config.batch_size};
  request.kind = request.samples.whole() ? MicroBatchKind::whole : MicroBatchKind::last;
  request.fields = guessed_fields(config, forward);
  request.evaluate = engine.evaluate;
  request.thawed = thawed_where_most_trains(config.parameters.freeze);
  const bool has_loss = !config.loss.terms.empty() || algorithm != nullptr;
  request.algorithm = std::move(algorithm);
  return build_training_graph(engine.operators,
                              has_loss ? forward : with_sample_loss(engine, forward), request)
      .graph;
}

}  // namespace tandem::api
