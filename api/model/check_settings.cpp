#include "api/model/check_settings.h"

#include <algorithm>

#include "engine/losses/loss.h"
#include "engine/train/graph/training_graph.h"

namespace tandem::api {
namespace {

/// The loss as far as it is known before labels are fed: a penalty on each value that a term reads.
LossConfig without_labels(const LossConfig& loss, const Graph& forward) {
  const auto is_no_number = [&](const std::string& name) {
    const NamedValue* output = forward.find_output(name);
    const ValueId value = output != nullptr ? output->value : forward.find_value(name);
    return value && !is_float(forward.type(value).dtype);
  };
  LossConfig result = loss;
  result.terms.clear();
  for (const LossTerm& term : loss.terms) {
    for (const std::string& value : term.values) {
      if (is_no_number(value)) continue;
      LossTerm penalty;
      penalty.name = value == term.values[0] ? term.name : term.name + "." + value;
      penalty.kind = find_loss("sum_of_squares");
      penalty.options = penalty.kind->options;
      penalty.values = {value};
      penalty.reduction = LossReduction::sum;
      penalty.where = term.where;
      result.terms.push_back(std::move(penalty));
    }
  }
  return result;
}

}  // namespace

void check_settings(const Engine& engine, const RunConfig& config, const Graph& forward,
                    const std::vector<bool>& thawed) {
  const bool has_scalar = std::any_of(
      forward.outputs.begin(), forward.outputs.end(),
      [&](const NamedValue& output) { return forward.type(output.value).elements() == 1; });
  if (config.loss.terms.empty() && config.loss.output.empty() && !has_scalar) return;
  RunConfig known = config;
  known.loss = without_labels(config.loss, forward);
  if (known.loss.terms.empty() && !config.loss.terms.empty()) return;
  TrainingRequest request;
  request.config = &known;
  request.samples = {config.batch_size, config.batch_size};
  request.thawed = thawed;
  for (const NamedValue& input : forward.inputs)
    request.fields[input.name] = forward.type(input.value);
  build_training_graph(engine.operators, forward, request);
}

}  // namespace tandem::api
