// tandem::api::Session: training on tensors that the caller feeds step by step.
#include <algorithm>
#include <cmath>
#include <optional>

#include "api/export/export.h"
#include "api/export/frozen_weights.h"
#include "api/model/check_settings.h"
#include "api/train/check_feeds.h"
#include "api/train/given_objects.h"
#include "api/train/host_tensors.h"
#include "api/train/moved_from.h"
#include "api/train/session/session_impl.h"
#include "api/train/session/session_keys.h"
#include "engine/data/number_text.h"
#include "engine/graph/text.h"
#include "engine/train/algorithm/initial_states.h"
#include "engine/train/averages/weights_in_use.h"
#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/divergence/reported_ids.h"
#include "engine/train/graph/loss_scale.h"
#include "engine/train/loading/initialise.h"
#include "engine/train/programs/compiled_ahead.h"
#include "engine/train/programs/freeze_rules.h"
#include "engine/train/updates/learning_rate_factors.h"
#include "engine/train/updates/missed_steps.h"
#include "tandem/session_config.h"

namespace tandem::api {
namespace {

/// A Session only counts steps; `steps`, where it is set, is the length of a schedule.
RunLength length_of(const RunConfig& config) {
  RunLength length;
  length.steps = config.steps.value_or(RunLength::unlimited);
  return length;
}

}  // namespace

void refuse_stopped(const StopToken& stop) {
  if (!stop.stop_requested()) return;
  throw Error(ErrorKind::runtime,
              Diagnostic{.message = "interrupted", .fix = "nothing has changed"});
}

void Session::Impl::check_stop() const { refuse_stopped(stop); }

Session::Impl::Impl(RunConfig c, std::optional<std::string> policy_text)
    : config(std::move(c)),
      policy(read_run_policy(config, {.text = std::move(policy_text)})),
      engine(policy.threads),
      model(std::make_shared<ConfiguredModel>(engine, config), policy, {}),
      parts(model.run_parts()),
      length(length_of(config)),
      schedules(config.optimizer, length),
      averages(config.optimizer, length),
      trains_ahead(have_lead(config.optimizer)),
      written(
          initial_values(config.parameters, config.seed, forward(), parts.model->loading_parts())) {
  if (const auto algorithm = parts.model->algorithm({config.batch_size, true}))
    written.merge(initial_states(*algorithm, parts, config.seed));
  else
    check_settings(engine, config, forward(), thawed_now());
}

Session::Session(const std::string& model_path, std::int64_t batch_size,
                 const std::vector<std::string>& settings, const Policy* policy)
    : impl_(std::make_unique<Impl>(
          session_config(model_path, batch_size, settings, policy),
          policy == nullptr ? std::nullopt : std::optional(policy->text()))) {}
Session::Session(const SessionConfig& config) {
  refuse_stopped(config.stop);
  impl_ = std::make_unique<Impl>(session_config(config), text_of(policy_of(config)));
  impl_->stop = config.stop;
}
Session::Session(const Model& model, const SessionConfig& config)
    : Session(with_model(config, model, "SessionConfig")) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

std::vector<bool> Session::Impl::thawed_now() const {
  return thawed_after(config.parameters.freeze, length, static_cast<std::int64_t>(steps), {});
}

std::int64_t Session::Impl::taken() const {
  const auto number = static_cast<std::int64_t>(steps);
  const auto skipped = written.find(skipped_steps_state);  // as long as no program holds it
  return skipped == written.end() ? taken_steps(states, number)
                                  : number - skipped->second.as<std::int64_t>()[0];
}

void Session::Impl::count_missed_steps(const FieldTypes& fed) {
  TrainingRequest request;
  request.config = &config;
  request.samples = {config.batch_size, config.batch_size};
  request.evaluate = engine.evaluate;
  request.thawed = thawed;
  request.fields = fields.value_or(fed);
  if (parts.model->algorithm({config.batch_size, true})) return;
  missed_steps = missed.change(forward(), request, taken());
}

BoundProgram& Session::Impl::training(std::int64_t batch, const FieldTypes& fed) {
  if (std::vector<bool> now = thawed_now(); trainings.empty() || thawed != now) {
    trainings.clear();
    thawed = std::move(now);
    count_missed_steps(fed);
  }
  if (const auto found = trainings.find(batch); found != trainings.end()) return found->second;
  FieldTypes known_fields = fields.value_or(fed);
  TrainingRequest request;
  request.config = &config;
  request.samples = {batch, batch};
  request.evaluate = engine.evaluate;
  request.thawed = thawed;
  request.fields = known_fields;
  for (auto& [name, type] : request.fields) {
    if (!fields || type.shape.empty() || type.shape[0] != first_samples) continue;
    type.shape[0] = batch;
  }
  request.algorithm = parts.model->algorithm({batch, true});
  if (!request.algorithm) request.missed_steps = missed_steps;
  std::vector<std::string> names;
  for (const auto& [name, type] : request.fields) names.push_back(name);
  const TrainingGraph graph =
      build_training_graph(engine.operators, model.forward(batch, true), request);
  std::set<std::string> known;  // states that already have their values
  for (std::string& name : states.names()) known.insert(std::move(name));
  BoundProgram bound = bind_program(graph, parts, states, arenas, names);
  if (!fields) {
    check_later_phases(request, bound, batch);
    fields = std::move(known_fields);
    first_samples = batch;
  }
  known.merge(write_states());
  initialise_averages(states, known);
  return trainings.emplace(batch, std::move(bound)).first->second;
}

void Session::Impl::check_later_phases(TrainingRequest request, const BoundProgram& first,
                                       std::int64_t batch) {
  const std::vector<FreezeRule>& rules = config.parameters.freeze;
  const std::vector<FreezePhase> phases = freeze_phases(rules, length);
  CompiledAhead ahead(parts, states);
  ahead.has_of_phase(first);
  MissedSteps missed_then = missed;
  for (std::size_t i = 1; i < phases.size(); ++i) {
    ahead.begin_phase();
    try {
      request.thawed = phases[i].thawed;
      if (!request.algorithm)
        request.missed_steps = missed_then.change(forward(), request, phases[i].first_step - 1);
      ahead.add(build_training_graph(engine.operators, model.forward(batch, true), request).graph,
                parts);
      ahead.check_fit();
    } catch (const Error& error) {
      throw error_in_phase(error, rules, phases[i - 1], phases[i]);
    }
  }
}

std::set<std::string> Session::Impl::write_states() {
  std::set<std::string> names;
  for (auto at = written.begin(); at != written.end();) {
    if (!states.has(at->first)) {
      ++at;
      continue;
    }
    states.write(at->first, at->second);
    names.insert(at->first);
    at = written.erase(at);
  }
  return names;
}

HostTensor Session::Impl::read(const State& state) const {
  if (states.has(state.name)) return states.read(state.name);
  const auto found = written.find(state.name);
  return found != written.end() ? found->second : state.start;
}

double Session::Impl::base_rate(double base) const {
  if (!learning_rate) return base;
  const double configured = config.optimizer.base.lr;
  if (base == configured) return *learning_rate;
  return configured > 0 ? base * (*learning_rate / configured) : base;
}

double Session::step(const Tensors& feeds) {
  Impl& my = held(impl_, session_handle);
  my.check_stop();
  const FieldTypes types = types_of_feeds(feeds);
  my.refuse_unknown(feeds);
  const std::int64_t most = my.config.batch_size;  // larger batches are refused
  const std::int64_t batch = std::min(my.samples_of(types).value_or(most), most);
  BoundProgram& training = my.training(batch, types);
  Program& program = *training.program;
  const std::uint64_t ticket = my.steps;
  feed(program, feeds, types, ticket);
  my.check_fed_values(feeds, types, batch);
  if (training.step_input >= 0) {
    *static_cast<std::int64_t*>(program.input_slot(training.step_input, ticket)) =
        static_cast<std::int64_t>(my.steps + 1);
  }
  const auto number = static_cast<std::int64_t>(my.steps + 1);
  for (const auto& [input, rate] : training.learning_rates) {
    *static_cast<float*>(program.input_slot(input, ticket)) =
        static_cast<float>(my.base_rate(rate.base) * my.schedules.factor(rate.schedule, number));
  }
  for (const auto& [input, average] : training.averages) {
    *static_cast<float*>(program.input_slot(input, ticket)) =
        static_cast<float>(my.averages.of(average, number));
  }
  StepContext context;
  context.seed = my.config.seed;
  context.step = my.steps + 1;
  context.error = &my.errors;
  program.run(context, ticket);
  ++my.steps;
  refuse_reported(program, my.errors, " at step " + std::to_string(my.steps));
  if (my.parts.devices.size() > 1) check_order(my.engine);
  const double loss = *static_cast<const float*>(program.output(training.loss_output, ticket));
  my.refuse_divergence(training, loss, ticket, feeds, types);
  return loss;
}

void Session::Impl::check_fed_values(const Feeds& feeds, const FieldTypes& fed,
                                     std::int64_t batch) {
  if (!checks) checks.emplace(config, forward(), engine.evaluate);
  check_feeds(*checks, feeds, fed, batch);
}

void Session::Impl::refuse_divergence(const BoundProgram& training, double loss,
                                      std::uint64_t ticket, const Feeds& feeds,
                                      const FieldTypes& fed) {
  if (!std::isfinite(loss)) {
    Diagnostic d;
    d.message = "the loss is not finite at step " + std::to_string(steps);
    d.expected = "a number";
    d.got = number_text(loss);
    d.fix = "lower optimizer.lr, or set optimizer.clip_norm";
    if (config.precision.compute == DType::float16)
      d.fix += "; float16 ends at 65504: precision.compute = \"bfloat16\" goes further";
    std::vector<Diagnostic> problems = not_finite_feeds(feeds, fed);
    if (!problems.empty()) d.fix = "";  // the arrays are the cause
    problems.insert(problems.begin(), std::move(d));
    throw Error(ErrorKind::diverged, std::move(problems));
  }
  if (training.scale_output < 0) return;
  const auto at = [&](int output) { return training.program->output(output, ticket); };
  scale_watch.check(config, steps, *static_cast<const float*>(at(training.scale_output)),
                    *static_cast<const std::int64_t*>(at(training.skipped_output)));
}

Tensors Session::parameters() const {
  Impl& my = held(impl_, session_handle);
  const SessionWeights in_use = my.weights_in_use();
  Tensors result;
  for (const State& state : my.forward().states) {
    if (state.kind != StateKind::parameter || !state.derived.is_saved()) continue;
    result[state.name] = public_tensor(my.read(state));
  }
  return result;
}

void Session::set_parameter(const std::string& name, const Tensor& value) {
  Impl& my = held(impl_, session_handle);
  const TensorType type = checked_type(value, name);
  const State* state = my.forward().find_state(name);
  const bool found =
      state != nullptr && state->kind == StateKind::parameter && state->derived.is_saved();
  if (!found || state->start.type() != type) {
    Diagnostic d;
    d.path = name;
    d.message = found ? "this parameter has another type" : "there is no such parameter";
    if (found) d.expected = to_string(state->start.type());
    d.got = to_string(type);
    const auto& aliases = my.model.model().micro_batch().aliases;
    if (const auto alias = aliases.find(name); alias != aliases.end())
      d.fix = "it is tied: set \"" + alias->second + "\"";
    throw Error(ErrorKind::usage, std::move(d));
  }
  my.written[name] = host_tensor(value, name).clone();
  SessionWeights::forget_lead(my.own_states(), name);
  my.write_states();
}

void Session::save(const std::string& path) const {
  Impl& my = held(impl_, session_handle);
  const SessionWeights in_use = my.weights_in_use();
  CheckpointContent content;
  collect_states(my.states, content);
  for (const State& state : my.forward().states) {
    if (!my.states.has(state.name)) content.model.push_back({state.name, my.read(state)});
  }
  ConfiguredModel& model = my.model.model();
  content.aliases = model.micro_batch().aliases;
  merge_adapters(content, model.adapted());
  ExportedModel exported;
  if (!my.config.parameters.head.empty()) exported.resized = model.resized();
  export_weights(my.engine, &model.file(), my.config, content, path, exported);
}

}  // namespace tandem::api
