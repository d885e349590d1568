// tandem::api::Session: training fed by the caller, array by array.
#include <cstring>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "api/array.h"
#include "api/engine.h"
#include "api/export_weights.h"
#include "engine/training/checkpoint.h"
#include "engine/training/reported_ids.h"
#include "tandem/tandem.h"

namespace tandem::api {
namespace {

RunConfig session_config(const std::string& model_path, std::int64_t batch_size,
                         const std::vector<std::string>& settings) {
  const std::string folder = std::filesystem::current_path().string();
  std::vector<std::string> overrides{
      "model=" + nlohmann::json(std::filesystem::absolute(model_path).string()).dump(),
      "batch_size=" + std::to_string(batch_size)};
  overrides.insert(overrides.end(), settings.begin(), settings.end());
  return parse_run_config("steps = 1\n", folder + "/session.toml", overrides);
}

}  // namespace

struct Session::Impl {
  RunConfig config;
  Engine engine;
  OpenModel model;
  RunParts parts;
  StateStore states;
  std::shared_ptr<Arenas> arenas = make_arenas();
  BoundProgram training;
  std::map<std::int64_t, std::unique_ptr<Program>> predictors;
  std::uint64_t steps = 0, predictions = 0;
  ErrorWord errors;
  std::map<std::string, HostTensor> written;  // parameters set before a program holds them

  explicit Impl(RunConfig c)
      : config(std::move(c)),
        engine(config.threads),
        model(engine, config),
        parts(run_parts(engine, model, config)) {}

  /// The model in training form: what the parameters are, before any program exists.
  const Graph& forward() { return model.forward(config.batch_size, true); }
  void feed(Program& program, const std::map<std::string, Array>& feeds, std::uint64_t ticket);
  /// Fields that the loss reads and the model does not: their types come from the first feeds.
  void build(const std::map<std::string, Array>& feeds);
  Program& predictor(std::int64_t batch);
  /// Hands `written` to the states that exist since a program was made.
  void write_states();
  /// A parameter or buffer as it is now, also where no program holds it yet.
  HostTensor read(const State& state) const;
  /// Throws what kernels reported in the last step; the session stays usable.
};

Session::Session(const std::string& model_path, std::int64_t batch_size,
                 const std::vector<std::string>& settings)
    : impl_(std::make_unique<Impl>(session_config(model_path, batch_size, settings))) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

void Session::Impl::feed(Program& program, const std::map<std::string, Array>& feeds,
                         std::uint64_t ticket) {
  const Graph& graph = program.lowered().graph;
  std::vector<Diagnostic> problems;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string& name = graph.inputs[i].name;
    const TensorType& type = graph.type(graph.inputs[i].value);
    if (name.starts_with("optimizer.")) continue;
    const auto found = feeds.find(name);
    Diagnostic d;
    d.path = name;
    d.expected = to_string(type);
    if (found == feeds.end()) {
      d.message = "this input is not fed";
      problems.push_back(std::move(d));
      continue;
    }
    const HostTensor tensor = to_tensor(found->second, name);
    if (tensor.type() != type) {
      d.message = "this input is fed with another type";
      d.got = to_string(tensor.type());
      problems.push_back(std::move(d));
      continue;
    }
    if (tensor.bytes() > 0)
      std::memcpy(program.input_slot(static_cast<int>(i), ticket), tensor.data(), tensor.bytes());
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
}

void Session::Impl::build(const std::map<std::string, Array>& feeds) {
  TrainingRequest request;
  request.config = &config;
  request.samples = {config.batch_size, config.batch_size};
  request.evaluate = engine.evaluate;
  std::vector<std::string> names;
  for (const auto& [name, array] : feeds) {
    request.fields[name] = to_tensor(array, name).type();
    names.push_back(name);
  }
  const TrainingGraph graph = build_training_graph(engine.operators, forward(), request);
  training = bind_program(graph, parts, states, arenas, names);
  write_states();
}

void Session::Impl::write_states() {
  for (auto at = written.begin(); at != written.end();) {
    if (!states.has(at->first)) {
      ++at;
      continue;
    }
    states.write(at->first, at->second);
    at = written.erase(at);
  }
}

HostTensor Session::Impl::read(const State& state) const {
  if (states.has(state.name)) return states.read(state.name);
  const auto found = written.find(state.name);
  return found != written.end() ? found->second : state.start;
}

double Session::step(const std::map<std::string, Array>& feeds) {
  Impl& my = *impl_;
  if (!my.training.program) my.build(feeds);
  Program& program = *my.training.program;
  const std::uint64_t ticket = my.steps;
  my.feed(program, feeds, ticket);
  *static_cast<std::int64_t*>(program.input_slot(my.training.step_input, ticket)) =
      static_cast<std::int64_t>(my.steps + 1);
  for (const auto& [input, rate] : my.training.learning_rates) {
    *static_cast<float*>(program.input_slot(input, ticket)) = static_cast<float>(rate.base);
  }
  StepContext context;
  context.seed = my.config.seed;
  context.step = my.steps + 1;
  context.error = &my.errors;
  program.run(context, ticket);
  ++my.steps;
  refuse_reported(program, my.errors);
  if (my.parts.devices.size() > 1) check_order(my.engine);
  return *static_cast<const float*>(program.output(my.training.loss_output, ticket));
}

Program& Session::Impl::predictor(std::int64_t batch) {
  std::unique_ptr<Program>& program = predictors[batch];
  if (!program) {
    const Graph& graph = model.forward(batch, false);
    program = std::make_unique<Program>(graph, parts.place(graph), engine.operators, parts.devices,
                                        states, arenas, parts.options);
    write_states();
  }
  return *program;
}

std::map<std::string, Array> Session::predict(const std::map<std::string, Array>& feeds) {
  Impl& my = *impl_;
  if (feeds.empty() || feeds.begin()->second.shape.empty()) {
    Diagnostic d;
    d.message = "predict needs at least one fed array with a batch axis";
    throw Error(ErrorKind::usage, std::move(d));
  }
  Program& program = my.predictor(feeds.begin()->second.shape[0]);
  const std::uint64_t ticket = my.predictions++;
  my.feed(program, feeds, ticket);
  StepContext context;
  context.error = &my.errors;
  program.run(context, ticket);
  refuse_reported(program, my.errors);
  std::map<std::string, Array> result;
  const Graph& graph = program.lowered().graph;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    HostTensor tensor(graph.type(graph.outputs[i].value));
    if (tensor.bytes() > 0)
      std::memcpy(tensor.data(), program.output(static_cast<int>(i), ticket), tensor.bytes());
    result[graph.outputs[i].name] = to_array(tensor);
  }
  return result;
}

std::map<std::string, Array> Session::parameters() const {
  std::map<std::string, Array> result;
  for (const State& state : impl_->forward().states) {
    if (state.kind != StateKind::parameter || !state.cache_of.empty()) continue;
    result[state.name] = to_array(impl_->read(state));
  }
  return result;
}

void Session::set_parameter(const std::string& name, const Array& value) {
  HostTensor tensor = to_tensor(value, name);
  const State* state = impl_->forward().find_state(name);
  const bool found =
      state != nullptr && state->kind == StateKind::parameter && state->cache_of.empty();
  if (!found || state->start.type() != tensor.type()) {
    Diagnostic d;
    d.path = name;
    d.message = found ? "this parameter has another type" : "there is no such parameter";
    if (found) d.expected = to_string(state->start.type());
    d.got = to_string(tensor.type());
    throw Error(ErrorKind::usage, std::move(d));
  }
  impl_->written[name] = std::move(tensor);
  impl_->write_states();
}

void Session::save(const std::string& path) const {
  CheckpointContent content;
  collect_states(impl_->states, content);
  for (const State& state : impl_->forward().states) {
    if (!impl_->states.has(state.name)) content.model.push_back({state.name, impl_->read(state)});
  }
  content.aliases = impl_->model.aliases();
  export_weights(impl_->engine, impl_->model.file(), impl_->config, content, path);
}

}  // namespace tandem::api
