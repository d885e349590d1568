#include "api/trained/staged_model.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/formats/sha256.h"
#include "engine/graph/error.h"
#include "engine/graph/rewrite.h"
#include "engine/train/divergence/reported_ids.h"

namespace tandem::api {
namespace {

/// A loop that is unrolled iteration by iteration needs one stage for each.
constexpr int most_stages = 512;
constexpr std::size_t most_kept = 8;

/// The key of an import; of the fed values, only the types matter.
std::string key_of(std::int64_t samples, const StageValues& values) {
  std::string text = std::to_string(samples);
  for (const auto& [key, tensor] : values.fed)
    text += fmt::format("\nfed {} {}", key, to_string(tensor.type()));
  for (const auto& [key, tensor] : values.known)
    text += fmt::format("\nknown {} {} {}", key, to_string(tensor.type()),
                        sha256(tensor.data(), tensor.bytes()));
  return sha256(text.data(), text.size());
}

BatchTensors named_inputs(const StageValues& values) {
  BatchTensors inputs;
  for (const auto& [key, tensor] : values.fed) inputs.emplace(stage_name(key), tensor);
  return inputs;
}

const HostTensor* find(const std::map<std::string, HostTensor>& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

/// Checks a field that is read from the batch without a program, and which others are checked
/// against.
void check_read_field(const Graph& graph, const std::string& name, const HostTensor& value,
                      const RunConfig& config) {
  const NamedValue* input = graph.find_input(name);
  if (input == nullptr || graph.type(input->value) == value.type()) return;
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "the field does not have the type of the model's input",
                         .file = config.file,
                         .path = "data.fields." + name,
                         .expected = to_string(graph.type(input->value)),
                         .got = to_string(value.type()),
                         .fix = "change it in its `as`, or export the model for this shape"});
}

[[noreturn]] void refuse_stages(const StageRequest& request) {
  throw Error(
      ErrorKind::runtime,
      Diagnostic{.message = fmt::format("{}: a batch takes more than {} stages, since the data "
                                        "decides after each stage how the model continues",
                                        request.op, most_stages),
                 .path = request.path,
                 .fix = "give the loop a trip count that ends it, or a body without weights"});
}

}  // namespace

struct StagedModel::Stage {
  std::string key;
  Graph graph;  // after the passes
  StageImport import;
  // Program for what the import asks for; none where the import is complete.
  std::optional<BoundProgram> bound;
  std::uint64_t ticket = 0;
};

StagedModel::StagedModel(ConfiguredModel& model, PlacedModel& placed, const RunParts& parts,
                         StateStore& states, std::shared_ptr<Arenas> arenas,
                         std::function<void(Graph&)> start)
    : model_(model),
      placed_(placed),
      parts_(parts),
      states_(states),
      arenas_(std::move(arenas)),
      start_(std::move(start)) {}

StagedModel::~StagedModel() = default;

StagedModel::Stage& StagedModel::stage_for(std::int64_t samples, const StageValues& values) {
  const std::string key = key_of(samples, values);
  const auto found = std::find_if(stages_.begin(), stages_.end(),
                                  [&](const auto& stage) { return stage->key == key; });
  if (found != stages_.end()) {
    std::rotate(stages_.begin(), found, found + 1);
    return *stages_[0];
  }
  ImportResult imported = model_.import_stage(samples, values);
  auto stage = std::make_unique<Stage>();
  stage->key = key;
  stage->import = std::move(imported.stage);
  if (!stage->import.requests.empty()) {
    Graph& graph = imported.graph;
    std::erase_if(graph.outputs, [&](const NamedValue& output) {
      const auto& wanted = stage->import.outputs;
      return std::find(wanted.begin(), wanted.end(), output.name) == wanted.end();
    });
    graph = remove_dead(graph, *parts_.operators);
  }
  stage->graph = placed_.with_passes(std::move(imported.graph));
  start_(stage->graph);
  if (stages_.size() >= most_kept) stages_.pop_back();
  stages_.insert(stages_.begin(), std::move(stage));
  return *stages_[0];
}

void StagedModel::compile(Stage& stage, const BatchTensors& batch, const BatchTensors& fed,
                          Graph graph) {
  if (stage.bound || graph.outputs.empty()) return;
  TrainingGraph forward;
  forward.graph = std::move(graph);
  check_fed_inputs(forward, model_.config(), types_of({&batch, &fed}));
  stage.bound = bind_program(forward, with_single_slots(parts_), states_, arenas_, {});
}

BatchTensors StagedModel::run(Stage& stage, const BatchTensors& batch, const StageValues& values) {
  const BatchTensors fed = named_inputs(values);
  Graph graph = stage.graph;
  BatchTensors made = take_given_outputs(graph, {&batch, &fed});
  compile(stage, batch, fed, std::move(graph));
  if (!stage.bound) return made;
  Program& program = *stage.bound->program;
  const std::uint64_t ticket = stage.ticket++;
  feed_inputs(program, {&batch, &fed}, ticket);
  StepContext context;
  context.seed = model_.config().seed;
  program.run(context, ticket);
  refuse_reported(program, program.errors());
  for (const std::string& name : stage.import.outputs) {
    if (!made.contains(name)) made.emplace(name, output_of(*stage.bound, name, ticket));
  }
  return made;
}

void StagedModel::advance(Stage& stage, const BatchTensors& batch, StageValues& values) {
  const BatchTensors made = run(stage, batch, values);
  const auto value_of = [&](const std::string& key) {
    for (const HostTensor* value :
         {find(values.known, key), find(values.fed, key), find(made, stage_name(key))}) {
      if (value != nullptr) return *value;
    }
    if (const HostTensor* field = find(batch, key)) {
      check_read_field(stage.graph, key, *field, model_.config());
      return *field;
    }
    if (const State* state = stage.graph.find_state(key)) return state->start;
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "no data field feeds this input of the model",
                           .path = key,
                           .fix = "add it to [data.fields]"});
  };
  const std::size_t before = values.known.size() + values.fed.size();
  for (const StageRequest& request : stage.import.requests) {
    std::vector<HostTensor> reads;
    for (const std::string& key : request.reads) reads.push_back(value_of(key));
    if (request.makes.empty()) {
      for (std::size_t i = 0; i < reads.size(); ++i)
        values.known.emplace(request.reads[i], reads[i]);
      continue;
    }
    const std::vector<HostTensor> results = request.make(reads);
    for (std::size_t i = 0; i < request.makes.size(); ++i)
      values.fed.emplace(request.makes[i], results[i]);
  }
  for (const std::string& key : stage.import.carried) values.fed.emplace(key, value_of(key));
  if (values.known.size() + values.fed.size() == before) refuse_stages(stage.import.requests[0]);
}

StagedGraph StagedModel::graph_for(std::int64_t samples, const BatchTensors& batch) {
  StageValues values;
  for (int number = 0;; ++number) {
    Stage& stage = stage_for(samples, values);
    if (stage.import.requests.empty()) return {stage.graph, stage.key, named_inputs(values)};
    if (number == most_stages) refuse_stages(stage.import.requests[0]);
    advance(stage, batch, values);
  }
}

}  // namespace tandem::api
