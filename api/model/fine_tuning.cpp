#include "api/model/fine_tuning.h"

#include <cmath>

#include "api/trained/loaded_weights.h"
#include "engine/passes/teacher.h"
#include "engine/train/loading/initialise.h"

namespace tandem::api {
void FineTuning::resize(const OnnxFile& file, ImportOptions& options) {
  options.keeps_16_bits = true;
  if (config_.parameters.head.empty()) return;
  if (!has_heads_) {
    heads_ = resized_layers(import_graph(file, engine_.operators, options).graph,
                            config_.parameters.head);
    has_heads_ = true;
  }
  for (const ResizedState& head : heads_) options.resized[head.name] = head.shape;
}

void FineTuning::apply(const ImportOptions& options, ImportResult& model) {
  start_heads(model.graph);
  store(model.graph);
  adapt(options, model.graph);
  join_teacher(options, model.graph);
}

// Weight and bias start uniform within 1 / sqrt(fan_in), as PyTorch's Linear and convolutions do.
void FineTuning::start_heads(Graph& graph) {
  for (const ResizedState& head : heads_) {
    added_.insert(head.name);
    for (State& state : graph.states) {
      if (state.name != head.name) continue;
      state.start = uniform_values(config_.seed, state.name, state.start.type(),
                                   1 / std::sqrt(static_cast<double>(head.fan_in)));
      state.starts_at_zero = false;
    }
  }
}

void FineTuning::store(Graph& graph) {
  std::set<std::string> new_layers;
  for (const ResizedState& head : heads_) new_layers.insert(head.name);
  stored_.apply(graph, new_layers);
  added_.merge(scales_names(stored_.packed()));
}

void FineTuning::adapt(const ImportOptions& options, Graph& graph) {
  if (config_.parameters.lora.empty()) return;
  LoraRequest request;
  request.rules = config_.parameters.lora;
  request.train = config_.parameters.train;
  for (const ResizedState& head : heads_) request.new_layers.insert(head.name);
  request.training = options.training;
  request.draw = [this](const std::string& name, const TensorType& type, double bound) {
    return uniform_values(config_.seed, name, type, bound);
  };
  adapted_ = adapted_weights(graph, request.rules);
  graph = add_lora(graph, engine_.operators, request);
  for (const AdaptedWeight& weight : adapted_) {
    for (const std::string& part : weight.parts()) added_.insert(part);
  }
}

const OnnxFile& FineTuning::teacher() {
  if (!teacher_)
    teacher_ = std::make_unique<OnnxFile>(OnnxFile::open(config_.distillation.teacher));
  return *teacher_;
}

// Adds the teacher in inference form, in training as well as in evaluation. Values of it that no
// loss reads are removed by the passes.
void FineTuning::join_teacher(const ImportOptions& options, Graph& graph) {
  const DistillationConfig& config = config_.distillation;
  if (!config.has_teacher()) return;
  ImportOptions own;
  own.bind = options.bind;
  own.batch = options.batch;
  own.batch_norm = "inference";
  own.training = false;
  own.evaluate = options.evaluate;
  ImportResult imported = import_graph(teacher(), engine_.operators, own);
  if (!config.weights.empty() && !has_teacher_weights_) {
    ParametersConfig parameters;
    LoadRule& rule = parameters.load.emplace_back();
    rule.from = config.weights;
    rule.where = config.where;
    teacher_weights_ =
        initial_values(parameters, config_.seed, imported.graph, loading_parts(imported));
    has_teacher_weights_ = true;
  }
  for (State& state : imported.graph.states) {
    const auto loaded = teacher_weights_.find(state.name);
    if (loaded == teacher_weights_.end()) continue;
    state.start = loaded->second;
    state.starts_at_zero = false;
  }
  TeacherRequest request;
  request.prefix = teacher_prefix;
  request.inputs = config.inputs;
  request.where = config.where;
  graph = with_teacher(graph, imported.graph, engine_.operators, request);
}

}  // namespace tandem::api
