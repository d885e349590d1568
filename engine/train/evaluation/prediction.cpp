#include "engine/train/evaluation/prediction.h"

#include <algorithm>
#include <numeric>

#include "engine/formats/parallel_jobs.h"
#include "engine/graph/error.h"
#include "engine/graph/rewrite.h"
#include "engine/graph/selector.h"
#include "engine/graph/text.h"
#include "engine/train/divergence/reported_ids.h"
#include "engine/train/evaluation/evaluation.h"

namespace tandem {
namespace {

/// Indices into names of the outputs, or everything that is wrong with them.
std::vector<NamedValue> chosen_outputs(const Graph& graph, const std::vector<std::string>& names,
                                       std::int64_t samples) {
  std::vector<NamedValue> chosen;
  std::vector<std::string> known;
  for (const NamedValue& output : graph.outputs) known.push_back(output.name);
  std::vector<Diagnostic> problems;
  for (const std::string& name : names) {
    const NamedValue* output = graph.find_output(name);
    if (output == nullptr) {
      problems.push_back({.message = "the model has no value \"" + name + "\"",
                          .expected = known.empty() ? "" : "such as " + joined(known),
                          .fix = did_you_mean(nearest_name(name, known))});
      continue;
    }
    const TensorType& type = graph.type(output->value);
    if (type.shape.empty() || type.shape[0] != samples) {
      problems.push_back(
          {.message = "this value does not have one entry a sample",
           .path = name,
           .expected = std::to_string(samples) + " on axis 0, one a sample of the batch",
           .got = to_string(type)});
      continue;
    }
    chosen.push_back(*output);
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  return chosen;
}

}  // namespace

Prediction::Prediction(const RunConfig& config, const RunParts& parts,
                       std::vector<std::string> outputs, StateStore& states,
                       std::shared_ptr<Arenas> arenas)
    : config_(config),
      parts_(parts),
      names_(std::move(outputs)),
      states_(states),
      arenas_(std::move(arenas)),
      whole_(pass_graph(config.micro_batch_size())) {}

Graph Prediction::pass_graph(std::int64_t samples) const {
  Graph graph = parts_.model->forward({samples, false});
  graph.outputs = chosen_outputs(graph, names_, samples);
  return remove_dead(graph, *parts_.operators);
}

std::vector<std::string> Prediction::inputs() const {
  const auto readers = readers_of(whole_);
  std::vector<std::string> names;
  for (const NamedValue& input : whole_.inputs) {
    const bool is_output = std::any_of(whole_.outputs.begin(), whole_.outputs.end(),
                                       [&](const NamedValue& o) { return o.value == input.value; });
    if (is_output || !readers[static_cast<std::size_t>(input.value.index)].empty())
      names.push_back(input.name);
  }
  return names;
}

const TensorType& Prediction::type(std::size_t output) const {
  return whole_.type(whole_.outputs[output].value);
}

void Prediction::prepare(const DataSource& source, std::int64_t samples) {
  if (micro_batches_.contains(samples)) return;
  std::vector<std::string> fields;
  for (const DataField& field : source.fields()) fields.push_back(field.name);
  TrainingGraph training;
  training.graph = samples == config_.micro_batch_size() ? whole_ : pass_graph(samples);
  check_fed_inputs(training, config_, field_types(source, samples));
  MicroBatch micro_batch;
  micro_batch.bound = bind_program(training, parts_, states_, arenas_, fields);
  micro_batch.fields = fed_fields(micro_batch.bound);
  for (const std::string& name : names_)
    micro_batch.outputs.push_back(micro_batch.bound.output(name));
  micro_batches_.emplace(samples, std::move(micro_batch));
}

void Prediction::fill(MicroBatch& micro_batch, const SampleRange& samples) const {
  std::vector<std::int64_t> all(static_cast<std::size_t>(samples.count));
  std::iota(all.begin(), all.end(), samples.first);
  const auto workers = static_cast<std::size_t>(config_.data ? config_.data->workers : 1);
  const std::size_t pieces = std::min(workers, all.size());
  for (const int field : micro_batch.fields) {
    const std::size_t bytes =
        samples.source->fields()[static_cast<std::size_t>(field)].sample.bytes();
    auto* to = static_cast<std::uint8_t*>(micro_batch.bound.program->input_slot(
        micro_batch.bound.data_inputs[field], micro_batch.ticket));
    parallel_jobs(static_cast<int>(pieces), static_cast<std::int64_t>(pieces), [&](std::int64_t i) {
      const auto piece = static_cast<std::size_t>(i);
      const std::size_t begin = piece * all.size() / pieces,
                        end = (piece + 1) * all.size() / pieces;
      samples.source->fill(field, std::span(all).subspan(begin, end - begin), nullptr,
                           to + begin * bytes);
    });
  }
}

const std::vector<HostTensor>& Prediction::run(const SampleRange& samples) {
  prepare(*samples.source, samples.count);
  MicroBatch& micro_batch = micro_batches_.at(samples.count);
  Program& program = *micro_batch.bound.program;
  fill(micro_batch, samples);
  feed_next(micro_batch.bound, micro_batch.ticket, std::nullopt);
  StepContext context;
  context.seed = config_.seed;
  program.run(context, micro_batch.ticket);
  refuse_reported(program, program.errors());
  values_.clear();
  const Graph& graph = program.lowered().graph;
  for (const int output : micro_batch.outputs) {
    values_.emplace_back(graph.type(graph.outputs[static_cast<std::size_t>(output)].value),
                         const_cast<void*>(program.output(output, micro_batch.ticket)), nullptr);
  }
  ++micro_batch.ticket;
  return values_;
}

}  // namespace tandem
