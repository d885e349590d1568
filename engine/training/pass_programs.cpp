#include "engine/training/pass_programs.h"

#include <algorithm>

namespace tandem {
namespace {

int input_index(const Graph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (graph.inputs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

int BoundProgram::output(const std::string& name) const {
  const std::vector<NamedValue>& outputs = program->lowered().graph.outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

std::vector<int> fed_fields(const BoundProgram& bound) {
  std::vector<int> fields;
  for (std::size_t i = 0; i < bound.data_inputs.size(); ++i) {
    if (bound.data_inputs[i] >= 0) fields.push_back(static_cast<int>(i));
  }
  return fields;
}

PassShape shape_of(const Pass& pass) {
  PassShape shape{pass.count, pass.step_count, PassKind::whole};
  if (pass.index == 0) {
    shape.kind = pass.end_of_step ? PassKind::whole : PassKind::first;
  } else {
    shape.kind = pass.end_of_step ? PassKind::last : PassKind::middle;
  }
  return shape;
}

std::vector<PassShape> needed_shapes(std::int64_t samples, std::int64_t batch_size,
                                     std::int64_t pass_size, bool drop_last) {
  std::vector<PassShape> shapes;
  auto add_step = [&](std::int64_t count) {
    for (std::int64_t done = 0; done < count; done += pass_size) {
      Pass pass;
      pass.count = std::min(pass_size, count - done);
      pass.step_count = count;
      pass.index = done / pass_size;
      pass.end_of_step = done + pass_size >= count;
      const PassShape shape = shape_of(pass);
      if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    }
  };
  if (samples >= batch_size) add_step(batch_size);
  if (samples % batch_size != 0 && !drop_last) add_step(samples % batch_size);
  return shapes;
}

BoundProgram bind_program(const TrainingGraph& training, const RunParts& parts, StateStore& states,
                          std::shared_ptr<Arenas> arenas, const std::vector<std::string>& data_fields) {
  BoundProgram bound;
  const Graph& graph = training.graph;
  bound.program = std::make_unique<Program>(graph, parts.place(graph), *parts.operators, parts.devices,
                                            states, std::move(arenas), parts.options);
  for (const std::string& field : data_fields) bound.data_inputs.push_back(input_index(graph, field));
  bound.step_input = input_index(graph, step_input);
  for (const LearningRate& rate : training.learning_rates) {
    const int index = input_index(graph, rate.input);
    if (index >= 0) bound.learning_rates.emplace_back(index, rate);
  }
  for (const FedDenominator& fed : training.denominators) {
    bound.denominators.emplace_back(input_index(graph, fed.input), fed.term);
  }
  bound.loss_output = bound.output("loss");
  for (const std::string& term : training.terms) {
    bound.term_outputs.emplace_back(bound.output("loss." + term), term);
  }
  bound.norm_output = bound.output("gradient_norm");
  bound.notes = training.notes;
  return bound;
}

}  // namespace tandem
