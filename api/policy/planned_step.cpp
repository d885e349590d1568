#include "api/policy/planned_step.h"

#include <algorithm>

#include "api/model/sample_loss.h"
#include "api/path_value.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/plan/simulate.h"
#include "engine/training/config/config_value.h"
#include "engine/training/evaluation.h"
#include "kernels/emulated/emulated_device.h"

namespace tandem::api {
namespace {

RunConfig config_of(const PolicyOptions& options) {
  std::vector<std::string> overrides;
  if (!options.policy.empty()) overrides.push_back("policy=" + path_value(options.policy));
  overrides.insert(overrides.end(), options.overrides.begin(), options.overrides.end());
  if (options.config.empty() == options.model.empty()) {
    Diagnostic d;
    d.message = "which model the policy is for";
    d.expected = "a train.toml (--config) or an ONNX file (--model)";
    d.got = options.config.empty() ? "neither" : "both";
    d.fix = "tandem policy --help has examples";
    throw Error(ErrorKind::usage, std::move(d));
  }
  if (!options.config.empty()) return read_run_config(options.config, overrides);
  std::string model = "model={ file = " + path_value(options.model) + ", bind = {";
  std::int64_t batch = 1;
  for (const auto& [name, extent] : options.bind) {
    if (name == "batch") batch = extent;
    model += " " + text_value(name) + " = " + std::to_string(extent) + ",";
  }
  if (model.back() == ',') model.pop_back();
  overrides.insert(overrides.begin(), {model + " } }", "batch_size=" + std::to_string(batch),
                                       "optimizer={ kind = \"sgd\" }"});
  return parse_run_config("steps = 1\n", normal_path("train.toml"), overrides);
}

/// Each shape of a full step with its number of passes.
std::vector<std::pair<PassShape, std::int64_t>> step_shapes(const RunConfig& config) {
  std::vector<std::pair<PassShape, std::int64_t>> shapes;
  for (const PassShape& shape :
       needed_shapes(config.batch_size, config.batch_size, config.pass_size(), false)) {
    const std::int64_t passes = config.batch_size / config.pass_size();
    shapes.emplace_back(shape, shape.kind == PassKind::middle ? passes - 2 : 1);
  }
  return shapes;
}

}  // namespace

DeviceProfile profile_of(const Device& device, const ResolvedDevice& resolved,
                         const DeviceProfiles& stored) {
  DeviceProfile profile = assumed_profile(device.facts());
  if (resolved.use != "cpu") profile.link_bandwidth = EmulatedOptions{}.bytes_per_second;
  if (const auto known = stored.find(resolved.name); known != stored.end()) {
    profile = known->second.profile;
  }
  if (resolved.binding.bandwidth) profile.link_bandwidth = *resolved.binding.bandwidth;
  if (resolved.binding.latency) profile.link_latency = *resolved.binding.latency;
  return profile;
}

namespace {

void add_idle_views(const std::vector<IdleView>& views, std::int64_t times,
                    std::vector<IdleView>& all) {
  for (const IdleView& view : views) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const IdleView& other) {
      return other.path == view.path && other.device == view.device;
    });
    IdleView& to = known == all.end()
                       ? all.emplace_back(IdleView{view.path, view.device, view.neighbours, 0})
                       : *known;
    to.bytes += view.bytes * static_cast<std::size_t>(times);
  }
}

void add_pass(PlannedStep& step, PlannedPass pass, const Graph& imported) {
  const Lowered& lowered = pass.program.lowered;
  const Plan& plan = pass.program.plan;
  std::vector<Crossing> crossings = crossings_of(lowered, plan, &pass.simulation, &imported);
  add_idle_views(idle_views(lowered, crossings), pass.times, step.views);
  for (Crossing& crossing : crossings) {
    crossing.times = pass.times;
    step.exposed += crossing.exposed_ms / 1e3 * static_cast<double>(pass.times);
    step.crossings.push_back(std::move(crossing));
  }
  double busiest = 0;
  for (std::size_t q = 0; q < plan.queues.size(); ++q) {
    const Queue& queue = plan.queues[q];
    if (queue.name != lowered.devices[queue.device]->name()) continue;
    busiest = std::max(busiest, pass.simulation.queues[q].busy);
  }
  step.computing += busiest * static_cast<double>(pass.times);
  step.seconds += pass.simulation.seconds * static_cast<double>(pass.times);
  step.passes.push_back(std::move(pass));
}

}  // namespace

PolicyCase::PolicyCase(const PolicyOptions& options, PlacingArguments placing, bool without_policy)
    : config_(config_of(options)),
      from_model_(options.config.empty()),
      placing_(without_policy ? PlacingArguments{} : std::move(placing)) {
  if (!options.profile.empty()) {
    profiles_ = read_device_profiles(options.profile);
    std::vector<DeviceBinding> of_profile;  // the first say most
    if (!without_policy) add_stand_ins(profiles_, of_profile);
    placing_.stand_ins.insert(placing_.stand_ins.begin(), of_profile.begin(), of_profile.end());
  }
  if (without_policy) {
    config_.policy.clear();
    config_.device = "cpu";
  }
  engine_ = std::make_unique<Engine>(run_threads(config_, placing_));
  model_ = std::make_unique<OpenModel>(*engine_, config_, placing_);
  model_->use_data();
}

StoredProfile PolicyCase::profile(const std::string& device, bool measure) {
  const ResolvedPolicy& policy = resolved();
  const std::vector<Device*>& devices = open_devices();
  StoredProfile stored;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (policy.devices[d].name != device) continue;
    stored.profile = profile_of(*devices[d], policy.devices[d], profiles_);
    stored.memory_bytes = memory_limit(policy.devices[d], *devices[d]);
    if (!measure) break;
    const PlannedStep step = plan(PlannedPrograms::step);
    for (const PlannedPass& pass : step.passes)
      measure_kernels(pass.program, static_cast<int>(d), stored.profile);
  }
  return stored;
}

TrainingGraph PolicyCase::training() {
  resolved();
  return training_graph(step_shapes(config_).back().first, data().train.get());
}

const std::vector<Device*>& PolicyCase::open_devices() {
  resolved();
  return model_->placing().open_devices(*engine_->cpu, engine_->monitor);
}

std::string PolicyCase::placement_text() {
  const TrainingGraph training = this->training();
  const Placement placement = placing().place(training.graph);
  std::string text;
  for (std::size_t n = 0; n < placement.nodes.size(); ++n) {
    const std::string& device = placement.devices[placement.nodes[n].device];
    text += training.graph.nodes[n].path + " " + device + "\n";
  }
  for (std::size_t s = 0; s < placement.states.size(); ++s) {
    const PlacedState& state = placement.states[s];
    text += training.graph.states[s].name + " " + placement.devices[state.param] + " " +
            placement.devices[state.state] + "\n";
  }
  return text;
}

const DataSets& PolicyCase::data() { return config_.data ? model_->data() : no_data_; }

void PolicyCase::replace_policy(const std::string& text) {
  placing_.text = text;
  model_->replace_placing(Placing(config_, placing_));
}

const ResolvedPolicy& PolicyCase::resolved() {
  imported();
  return model_->placing().resolved();
}

TrainingGraph PolicyCase::training_graph(const PassShape& shape, const DataSource* source) {
  Graph forward = model_->forward(shape.pass, true);
  TrainingRequest request;
  request.config = &config_;
  request.kind = shape.kind;
  request.samples = {shape.pass, shape.step};
  request.evaluate = engine_->evaluate;
  request.fields = source ? field_types(*source, shape.pass) : guessed_fields(config_, forward);
  if (from_model_ && config_.loss.terms.empty()) forward = with_sample_loss(*engine_, forward);
  TrainingGraph training = build_training_graph(engine_->operators, forward, request);
  if (source) check_fed_inputs(training, config_, request.fields);
  return training;
}

void PolicyCase::add_other_programs(const PlannedStep& step, const ProgramOptions& options,
                                    const std::vector<Device*>& devices, RunMemory& memory) {
  const DataSets& data = this->data();
  const auto add = [&](const Graph& graph, bool rows_ahead) {
    ProgramOptions own = options;
    own.lower.rows_ahead = rows_ahead;
    memory.add(compile_program(graph, placing().place(graph), engine_->operators, devices, own));
  };
  if (data.train) {
    const std::int64_t samples = data.train->samples(), pass = config_.pass_size();
    const bool drop_last = config_.data && config_.data->drop_last;
    for (const PassShape& shape : needed_shapes(samples, config_.batch_size, pass, drop_last)) {
      if (std::any_of(step.passes.begin(), step.passes.end(),
                      [&](const PlannedPass& known) { return known.shape == shape; }))
        continue;
      const bool ends_full_step = shape.step == std::min(config_.batch_size, samples) &&
                                  (shape.kind == PassKind::whole || shape.kind == PassKind::last);
      add(training_graph(shape, data.train.get()).graph, ends_full_step);
    }
  }
  if (!data.eval) return;
  const std::int64_t samples = data.eval->samples(), pass = config_.pass_size();
  std::vector<std::int64_t> sizes{std::min(pass, samples), samples % pass};
  if (sizes[0] == sizes[1]) sizes.pop_back();
  for (const std::int64_t size : sizes) {
    if (size == 0) continue;
    TrainingRequest request;
    request.config = &config_;
    request.fields = field_types(*data.eval, size);
    request.samples = {size, config_.loss.terms.empty() ? size : samples};
    add(build_evaluation_graph(engine_->operators, model_->forward(size, false), request), false);
  }
}

PlannedStep PolicyCase::plan(PlannedPrograms programs) {
  const ResolvedPolicy& policy = resolved();
  const DataSets& data = this->data();
  const std::vector<Device*>& devices =
      model_->placing().open_devices(*engine_->cpu, engine_->monitor);
  std::vector<DeviceProfile> profiles;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    profiles.push_back(profile_of(*devices[d], policy.devices[d], profiles_));
  }
  PlannedStep step;
  RunMemory memory;
  ProgramOptions options;
  options.lower = lower_options(config_, *model_);
  for (const auto& [shape, times] : step_shapes(config_)) {
    const TrainingGraph training = training_graph(shape, data.train.get());
    PlannedPass pass;
    pass.shape = shape;
    pass.times = times;
    options.lower.rows_ahead = shape.kind == PassKind::whole || shape.kind == PassKind::last;
    pass.program = compile_program(training.graph, placing().place(training.graph),
                                   engine_->operators, devices, options);
    const Lowered& lowered = pass.program.lowered;
    pass.simulation = simulate(pass.program.plan, lowered, profiles);
    if (step.passes.empty()) {  // the first program fixes how states lie in memory
      for (std::size_t s = 0; s < lowered.states.size(); ++s) {
        options.lower.fixed_layouts.emplace_back(lowered.graph.states[s].name,
                                                 lowered.states[s].layout);
      }
    }
    memory.add(pass.program);
    add_pass(step, std::move(pass), imported().graph);
  }
  if (programs == PlannedPrograms::run) {
    try {
      add_other_programs(step, options, devices, memory);
    } catch (const Error& error) {  // a size that the model does not take: the run itself says so
      if (error.kind() != ErrorKind::usage) throw;
    }
  }
  step.memory = memory.uses();
  for (std::size_t d = 0; d < devices.size(); ++d) {
    step.limits.push_back(memory_limit(policy.devices[d], *devices[d]));
    step.limited.push_back(is_limited(policy, d));
  }
  expect_rows(step.crossings, policy);
  Plan highest;
  highest.memory = step.memory;
  try {
    check_fit(highest, policy, devices);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::does_not_fit) throw;
    step.misfits = error.diagnostics();
  }
  return step;
}

std::string rule_text(const Policy& policy, int rule) {
  return rule < 0 ? "" : short_text(policy.rules[static_cast<std::size_t>(rule)].where);
}

}  // namespace tandem::api
