#include "engine/train/steps/micro_batch_programs.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

#include "engine/formats/files.h"
#include "engine/graph/error.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "engine/ranks/rendezvous.h"
#include "engine/train/graph/loss_scale.h"

namespace tandem {

DEFINE_COPIES(RunParts);

namespace {

int input_index(const Graph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    if (graph.inputs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

bool is_read(const Graph& graph, ValueId value) {
  for (const Node& node : graph.nodes) {
    if (std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end()) return true;
  }
  return std::any_of(graph.outputs.begin(), graph.outputs.end(),
                     [&](const NamedValue& output) { return output.value == value; });
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

MicroBatchShape shape_of(const MicroBatch& micro_batch) {
  MicroBatchShape shape{micro_batch.own.count, micro_batch.step_count, MicroBatchKind::whole,
                        micro_batch.count, micro_batch.length};
  if (micro_batch.index == 0) {
    shape.kind = micro_batch.end_of_step ? MicroBatchKind::whole : MicroBatchKind::first;
  } else {
    shape.kind = micro_batch.end_of_step ? MicroBatchKind::last : MicroBatchKind::middle;
  }
  return shape;
}

std::vector<MicroBatch> micro_batches_of_step(std::int64_t count, std::int64_t micro_batch_size,
                                              const RankPlace& place) {
  std::vector<MicroBatch> micro_batches;
  for (std::int64_t done = 0; done < count; done += micro_batch_size) {
    MicroBatch& micro_batch = micro_batches.emplace_back();
    micro_batch.count = std::min(micro_batch_size, count - done);
    micro_batch.own = share_of(micro_batch.count, place);
    micro_batch.step_count = count;
    micro_batch.index = done / micro_batch_size;
    micro_batch.end_of_step = done + micro_batch_size >= count;
  }
  return micro_batches;
}

std::vector<MicroBatchShape> needed_shapes(std::int64_t samples, std::int64_t batch_size,
                                           std::int64_t micro_batch_size, bool drop_last,
                                           const RankPlace& place) {
  std::vector<MicroBatchShape> shapes;
  auto add_step = [&](std::int64_t count) {
    for (const MicroBatch& micro_batch : micro_batches_of_step(count, micro_batch_size, place)) {
      const MicroBatchShape shape = shape_of(micro_batch);
      if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    }
  };
  if (samples >= batch_size) add_step(batch_size);
  if (samples % batch_size != 0 && !drop_last) add_step(samples % batch_size);
  return shapes;
}

RankPlace place_of(const RunParts& parts) { return {parts.ranks->rank(), parts.ranks->ranks()}; }

void refuse_small_shares(const std::vector<MicroBatchShape>& shapes, const RunConfig& config,
                         int ranks) {
  for (const MicroBatchShape& shape : shapes) {
    if (shape.all >= ranks) continue;
    const bool is_full = shape.step == config.batch_size;
    Diagnostic d;
    d.file = config.file;
    d.path = is_full ? "batch_size" : "data.drop_last";
    d.message = "a micro-batch has fewer samples than there are ranks";
    d.expected = std::to_string(ranks) + " samples at least, one a rank";
    d.got = std::to_string(shape.all) +
            (is_full ? " of a step" : " at the end of an epoch, in a step") + " of " +
            std::to_string(shape.step);
    d.fix = is_full ? "start fewer ranks, or raise batch_size or micro_batch"
                    : "set data.drop_last = true, another batch_size, or start fewer ranks";
    throw Error(ErrorKind::usage, std::move(d));
  }
}

/// The line in which `tandem init` has left a field open; 0 where none does.
int open_line(const std::string& config_file, const std::string& field) {
  if (!path_exists(config_file) || is_directory(config_file)) return 0;
  std::istringstream lines(read_file(config_file));
  const std::string mark = "# TODO " + field + ":";
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with(mark)) return number;
  }
  return 0;
}

void check_fed_inputs(const TrainingGraph& training, const RunConfig& config,
                      const FieldTypes& fields) {
  const Graph& graph = training.graph;
  std::set<std::string> own{step_input, stop_flag};
  for (const LearningRate& rate : training.learning_rates) own.insert(rate.input);
  for (const FedDenominator& fed : training.denominators) own.insert(fed.input);
  for (const FedAverage& fed : training.averages) own.insert(fed.input);
  std::vector<std::string> names;
  for (const auto& [name, type] : fields) names.push_back(name);
  std::vector<Diagnostic> problems;
  for (const NamedValue& input : graph.inputs) {
    if (own.contains(input.name) || !is_read(graph, input.value)) continue;
    const auto found = fields.find(input.name);
    const TensorType& type = graph.type(input.value);
    if (found != fields.end() && found->second == type) continue;
    Diagnostic d{
        .file = config.file, .path = "data.fields." + input.name, .expected = to_string(type)};
    if (found == fields.end()) {
      d.message = "no data field feeds this input of the model";
      const std::string nearest = nearest_name(input.name, names);
      d.got = names.empty() ? "no fields" : "fields " + joined(names);
      d.fix = nearest.empty() ? "add it to [data.fields]" : "is `" + nearest + "` meant for it?";
      if (const int line = open_line(config.file, input.name); line > 0) {
        d.line = line;
        d.fix =
            "it is still a TODO here: take the # from the line that is suggested below it, or "
            "write another one";
      }
    } else {
      d.message = "the field does not have the type of the model's input";
      d.got = to_string(found->second);
      d.fix = found->second.shape == type.shape
                  ? "end its `as` with \"" + std::string(name_of(type.dtype)) + "\""
                  : "reshape or resize it in its `as`, or export the model for this shape";
    }
    if (config.data) {
      for (const FieldConfig& field : config.data->fields) {
        if (field.name != input.name) continue;
        d.file = field.where.file;
        d.line = field.where.line;
        d.column = field.where.column;
        if (field.from == "attention" && !config.data->buckets.lengths.empty() &&
            found != fields.end())
          d.fix =
              "data.buckets do not go with `attention`, which has two lengths: leave them out, and "
              "save padding with data.pack = true";
      }
    }
    problems.push_back(std::move(d));
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

void feed_next(const BoundProgram& bound, std::uint64_t ticket, std::optional<std::uint64_t> next) {
  const Graph& graph = bound.program->lowered().graph;
  for (const auto& [input, data] : bound.next_inputs) {
    void* const to = bound.program->input_slot(input, ticket);
    const void* const from = bound.program->input_slot(data, next.value_or(ticket));
    const std::size_t bytes = graph.type(graph.inputs[data].value).bytes();
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
}

BoundProgram bind_program(const TrainingGraph& training, const RunParts& parts, StateStore& states,
                          std::shared_ptr<Arenas> arenas,
                          const std::vector<std::string>& data_fields) {
  BoundProgram bound;
  const Graph& graph = training.graph;
  bound.program =
      std::make_unique<Program>(graph, parts.model->place(graph), *parts.operators, parts.devices,
                                states, std::move(arenas), parts.options);
  for (const std::string& field : data_fields)
    bound.data_inputs.push_back(input_index(graph, field));
  const Graph& lowered = bound.program->lowered().graph;  // its inputs begin with those of `graph`
  for (int input : bound.data_inputs) {
    if (input < 0) continue;
    const int next = input_index(lowered, next_input(lowered.inputs[input].name));
    if (next >= static_cast<int>(graph.inputs.size())) bound.next_inputs.emplace_back(next, input);
  }
  bound.step_input = input_index(graph, step_input);
  bound.signals_input = input_index(graph, stop_flag);
  bound.signals_output = bound.output(stop_flag);
  for (const LearningRate& rate : training.learning_rates) {
    const int index = input_index(graph, rate.input);
    if (index >= 0) bound.learning_rates.emplace_back(index, rate);
  }
  for (const FedDenominator& fed : training.denominators) {
    bound.denominators.emplace_back(input_index(graph, fed.input), fed.term);
  }
  for (const FedAverage& fed : training.averages)
    bound.averages.emplace_back(input_index(graph, fed.input), fed.average);
  bound.loss_output = bound.output("loss");
  for (const std::string& term : training.terms) {
    const int own = bound.output("loss." + term);
    bound.term_outputs.emplace_back(own >= 0 ? own : bound.loss_output, term);
  }
  for (const std::string& name : training.norms) bound.norms.emplace_back(bound.output(name), name);
  bound.norm_output = bound.output("gradient_norm");
  bound.scale_output = bound.output(loss_scale_output);
  bound.skipped_output = bound.output(skipped_steps_output);
  bound.notes = training.notes;
  return bound;
}

}  // namespace tandem
