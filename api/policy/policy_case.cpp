#include "api/policy/policy_case.h"

#include <algorithm>
#include <limits>

#include "api/model/sample_loss.h"
#include "api/path_value.h"
#include "api/policy/batch_size.h"
#include "api/timing/measure_kernels.h"
#include "engine/config/keys/config_value.h"
#include "engine/data/buckets/buckets.h"
#include "engine/data/buckets/cut_source.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/plan/simulate.h"
#include "engine/train/evaluation/evaluation.h"
#include "engine/train/updates/missed_steps.h"
#include "importer/batch/fixed_batch.h"
#include "placement/report/data_sheets.h"
#include "placement/report/fit.h"

namespace tandem::api {
namespace {

/// A configuration for a model without a train.toml: one step with sgd, or with the model's own
/// algorithm.
RunConfig config_of_model(const PolicyOptions& options) {
  const OnnxFile file = OnnxFile::open(options.model);
  std::int64_t batch = std::max<std::int64_t>(1, fixed_batch(file));
  ConfigValue extents = table_setting();
  for (const auto& [name, extent] : options.bind) {
    if (name == "batch")  // it gives the batch size, of which each rank gets a part
      batch = extent;
    else
      extents.add(text_value(name), integer_setting(extent));
  }
  ConfigValue model = table_setting();
  model.add("file", text_setting(path_value(options.model)));
  model.add("bind", std::move(extents));
  ConfigValue settings = table_setting();
  settings.add("model", std::move(model));
  settings.add("batch_size", integer_setting(batch));
  settings.add("steps", integer_setting(1));
  if (!has_training_info(file)) {
    ConfigValue optimizer = table_setting();
    optimizer.add("kind", text_setting("sgd"));
    settings.add("optimizer", std::move(optimizer));
  }
  return run_config_of(std::move(settings), normal_path("train.toml"), options.overrides);
}

RunConfig config_of(const PolicyOptions& options) {
  if (options.config.empty() == options.model.empty()) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "which model the policy is for",
                           .expected = "a train.toml (--config) or an ONNX file (--model)",
                           .got = options.config.empty() ? "neither" : "both",
                           .fix = "tandem policy --help has examples"});
  }
  RunConfig config = options.config.empty() ? config_of_model(options)
                                            : read_run_config(options.config, options.overrides);
  if (!options.policy.empty()) {
    config.policy = path_value(options.policy);
    config.policy_where = Where{std::string(command_line)};
  }
  return with_fitting_batch_size(std::move(config), options);
}

int ranks_of(const PolicyOptions& options) {
  if (options.ranks >= 1) return options.ranks;
  throw Error(ErrorKind::usage, Diagnostic{.message = "the number of ranks",
                                           .expected = "1 or more",
                                           .got = std::to_string(options.ranks)});
}

/// The length of the run; unlimited without data, so that it contains all borders between phases.
RunLength length_of(const RunConfig& config, const DataSets& data) {
  if (data.train) return run_length(config, data.epoch_samples());
  RunLength length;
  length.steps = config.steps.value_or(RunLength::unlimited);
  return length;
}

}  // namespace

DeviceProfile profile_of(const Device& device, const ResolvedDevice& resolved,
                         const DeviceProfiles& stored) {
  DeviceProfile profile = assumed_profile(device.facts());
  const DeviceFamily* const family = resolved.family();
  if (family != nullptr) profile.link_bandwidth = assumed_link_bandwidth;
  if (const auto known = stored.find(resolved.name); known != stored.end()) {
    profile = known->second.profile;
  }
  if (resolved.binding.bandwidth) profile.link_bandwidth = *resolved.binding.bandwidth;
  if (resolved.binding.latency) profile.link_latency = *resolved.binding.latency;
  if (family != nullptr && family->has_nccl) profile.collectives = CollectiveLibrary::nccl;
  return profile;
}

std::vector<DeviceProfile> device_profiles(const PlacedModel& placed) {
  std::vector<DeviceProfile> profiles;
  for (std::size_t d = 0; d < placed.devices().size(); ++d)
    profiles.push_back(profile_of(*placed.devices()[d], placed.resolved().devices[d]));
  return profiles;
}

DeviceProfile cache_profile_of(const Device& device, const ResolvedDevice& resolved,
                               const DeviceProfiles& stored) {
  DeviceProfile profile = profile_of(device, resolved, stored);
  const DeviceFamily* family = resolved.family();
  if (family && family->is_hardware && !stored.contains(resolved.name)) {
    profile.flops = profile.bandwidth = std::numeric_limits<double>::infinity();
    profile.overhead = 0;
  }
  return profile;
}

PolicyCase::PolicyCase(const PolicyOptions& options, PlacingArguments placing, CaseOptions reads)
    : PolicyCase(config_of(options), options, std::move(placing), reads) {}

PolicyCase::PolicyCase(RunConfig config, const PolicyOptions& options, PlacingArguments placing,
                       CaseOptions reads)
    : config_(std::move(config)),
      reads_(reads),
      place_{0, ranks_of(options)},
      from_model_(options.config.empty()) {
  if (!options.profile.empty()) {
    const PrecisionConfig& precision = config_.precision;
    profiles_ = named_profiles(options.profile, precision.compute, precision.tf32);
  }
  if (!options.network.empty()) network_ = parse_network(options.network);
  if (network_ && place_.ranks == 1) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "--network describes the network between ranks",
                           .expected = "--ranks N, with more than one",
                           .got = "one process"});
  }
  if (options.made) {
    if (!options.policy.empty()) {
      throw Error(ErrorKind::usage, Diagnostic{.message = "there are two policies",
                                               .expected = "a file, or a policy that is none",
                                               .got = "both (" + options.policy + ")"});
    }
    config_.policy = options.made->name();
    if (!placing.text) placing.text = options.made->text();
  }
  if (reads.policy) {
    placing_ = std::move(placing);
    std::vector<DeviceBinding> of_profile;  // the first ones have the highest priority
    add_stand_ins(profiles_, of_profile);
    placing_.stand_ins.insert(placing_.stand_ins.begin(), of_profile.begin(), of_profile.end());
  } else {
    config_.policy.clear();
    config_.device = "cpu";
  }
  policy_ = read_run_policy(config_, placing_);
  engine_ = std::make_unique<Engine>(policy_.threads);
  model_ = std::make_shared<ConfiguredModel>(*engine_, config_);
  if (reads.sets != nullptr)
    data_.emplace(model_, *reads.sets);
  else
    data_.emplace(model_);
}

PlacedModel& PolicyCase::placed() {
  if (!placed_) {
    placed_ =
        std::make_unique<PlacedModel>(model_, policy_, placing_, reads_.data ? &*data_ : nullptr);
  }
  return *placed_;
}

void PolicyCase::replace_policy(RunPolicy policy) {
  placed_.reset();
  policy_ = std::move(policy);
}

void PolicyCase::replace_policy(const std::string& text) {
  placing_.text = text;
  replace_policy(read_run_policy(config_, placing_));
}

void PolicyCase::with_rule(const PolicyRule& rule, FunctionRef<void()> look) {
  struct PutBack {
    PolicyCase& of;
    std::unique_ptr<PlacedModel> placed;  // earlier plans refer to its devices
    ~PutBack() {
      of.policy_.policy.rules.pop_back();
      of.placed_ = std::move(placed);
    }
  };
  policy_.policy.rules.push_back(rule);
  const PutBack put_back{*this, std::move(placed_)};
  look();
}

StoredProfile PolicyCase::profile(const std::string& device, bool measure) {
  const ResolvedPolicy& policy = resolved();
  const std::vector<Device*>& devices = this->devices();
  StoredProfile stored;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (policy.devices[d].name != device) continue;
    stored.profile = profile_of(*devices[d], policy.devices[d], profiles_);
    stored.memory_bytes = memory_limit(policy.devices[d], *devices[d]);
    if (!measure) break;
    const PlannedStep step = plan(PlannedPrograms::step);
    for (const PlannedMicroBatch& micro_batch : step.micro_batches)
      measure_kernels(micro_batch.program, static_cast<int>(d), stored.profile);
  }
  return stored;
}

RunPrograms PolicyCase::programs() {
  const DataSets& data = this->data();
  RunCounts counts;
  if (data.train) counts.samples = data.epoch_samples();
  if (data.eval) counts.eval_samples = data.eval->samples();
  if (data.buckets) counts.lengths = data.buckets->lengths;
  counts.place = place_;
  const bool exchanges = place_.ranks > 1 && shares_parameters(shardings_of(resolved()));
  RunPrograms programs = programs_of(config_, counts, length_of(config_, data), exchanges);
  std::vector<MicroBatchShape> shapes;
  for (const StepProgram& program : programs.steps) shapes.push_back(program.shape);
  refuse_small_shares(shapes, config_, place_.ranks);
  return programs;
}

TrainingGraph PolicyCase::training() {
  resolved();  // reports errors in the policy before errors in the data
  const RunPrograms all = programs();
  MicroBatchShape update;
  for (const StepProgram& program : all.steps) {
    if (program.is_of_full_step()) update = program.shape;
  }
  return *training_graph(update, all.phases.front().thawed);
}

std::shared_ptr<const tandem::DataSource> PolicyCase::source_of(std::int64_t length) {
  const DataSets& sets = data();
  if (!sets.buckets || length == 0 || length == sets.buckets->longest()) return sets.train;
  return cut_source(sets.train, sets.buckets->fields, length);
}

std::shared_ptr<const TrainingGraph> PolicyCase::training_graph(const MicroBatchShape& shape,
                                                                const std::vector<bool>& thawed,
                                                                const MissedStepCounts& missed) {
  GraphSource source;
  source.forward = placed().shared_forward(shape.micro_batch, true, shape.length);
  source.shape = shape;
  source.thawed = thawed;
  source.missed = missed;
  if (place_.ranks > 1) source.shards = shardings_of(placed().resolved());
  return graphs_.find(source, [&] { return built_training(source); });
}

TrainingGraph PolicyCase::built_training(const GraphSource& from) {
  const MicroBatchShape& shape = from.shape;
  const std::shared_ptr<const tandem::DataSource> source = source_of(shape.length);
  TrainingRequest request;
  request.config = &config_;
  request.kind = shape.kind;
  request.samples = {shape.micro_batch, shape.step};
  request.thawed = from.thawed;
  if (place_.ranks > 1) {
    request.ranks = {place_.ranks, shape.micro_batch, shape.micro_batch, place_.rank};
    request.shards = from.shards;
  }
  request.evaluate = engine_->evaluate;
  request.fields =
      source ? field_types(*source, shape.micro_batch) : guessed_fields(config_, *from.forward);
  request.algorithm = placed().model().algorithm(shape.micro_batch, true);
  if (request.algorithm == nullptr) request.missed_steps = from.missed;
  const bool makes_loss_up =
      from_model_ && config_.loss.terms.empty() && request.algorithm == nullptr;
  TrainingGraph training = tandem::build_training_graph(
      engine_->operators, makes_loss_up ? with_sample_loss(*engine_, *from.forward) : *from.forward,
      request);
  if (source) check_fed_inputs(training, config_, request.fields);
  return training;
}

CompiledProgram PolicyCase::compiled(const Graph& graph, const ProgramOptions& options) {
  return compile_program(graph, placed().place(graph), engine_->operators, devices(), options);
}

std::shared_ptr<const TrainingGraph> PolicyCase::evaluation_graph(std::int64_t size,
                                                                  const EvaluationPrograms& all) {
  GraphSource from;
  from.forward = placed().shared_forward(size, false);
  from.shape.micro_batch = size;
  from.shape.step = all.micro_batch;
  from.shape.all = all.rounds;
  from.trains = false;
  // Without rounds each rank runs its own samples as a single process would.
  if (all.rounds > 0) from.shards = shardings_of(placed().resolved());
  return graphs_.find(from, [&] {
    const tandem::DataSource& source = *data().eval;
    TrainingRequest request;
    request.config = &config_;
    request.fields = field_types(source, size);
    request.algorithm = placed().model().algorithm(size, false);
    request.samples = {size, config_.loss.terms.empty() ? size : source.samples()};
    if (all.rounds > 0) {
      request.ranks = {place_.ranks, size, all.micro_batch, place_.rank};
      request.shards = from.shards;
    }
    TrainingGraph evaluation;
    evaluation.graph = build_evaluation_graph(engine_->operators, *from.forward, request);
    return evaluation;
  });
}

void PolicyCase::add_other_programs(const RunPrograms& run, ProgramOptions options,
                                    RunMemory& memory) {
  MissedSteps missed;
  // The numbers of missed steps are constants of the programs.
  const auto missed_before = [&](const FreezePhase& phase) {
    const MicroBatchShape& shape = run.steps.front().shape;
    TrainingRequest request;
    request.config = &config_;
    request.thawed = phase.thawed;
    return missed.change(placed().forward(shape.micro_batch, true, shape.length), request,
                         phase.first_step - 1);
  };
  const auto add_steps = [&](const FreezePhase& phase, bool all) {
    const MissedStepCounts counts = missed_before(phase);
    for (const StepProgram& program : run.steps) {
      if (program.is_of_full_step() && !all) continue;
      options.lower.rows_ahead = program.takes_rows_ahead;
      const CompiledProgram made =
          compiled(training_graph(program.shape, phase.thawed, counts)->graph, options);
      add_layouts(made.lowered, options.lower.fixed_layouts);
      memory.add_of_phase(made.lowered, made.plan);
    }
  };
  add_steps(run.phases.front(), false);
  options.lower.rows_ahead = false;
  for (const std::int64_t size : run.evaluation.sizes)
    memory.add(compiled(evaluation_graph(size, run.evaluation)->graph, options));
  for (std::size_t i = 1; i < run.phases.size(); ++i) {
    memory.begin_phase();
    try {
      add_steps(run.phases[i], true);
    } catch (const Error& error) {
      throw error_in_phase(error, config_.parameters.freeze, run.phases[i - 1], run.phases[i]);
    }
  }
}

PlannedStep PolicyCase::plan(PlannedPrograms programs) {
  const ResolvedPolicy& policy = resolved();
  const std::vector<Device*>& devices = this->devices();
  std::vector<DeviceProfile> profiles, of_caches;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    of_caches.push_back(cache_profile_of(*devices[d], policy.devices[d], profiles_));
    DeviceProfile& profile =
        profiles.emplace_back(profile_of(*devices[d], policy.devices[d], profiles_));
    if (!network_) continue;
    profile.network_bandwidth = network_->bytes_per_second;
    profile.network_latency = network_->latency;
  }
  PlannedStep step;
  step.ranks = place_.ranks;
  RunMemory memory;
  ProgramOptions options;
  options.lower = placed().lower_options();
  const RunPrograms run = this->programs();
  for (const StepProgram& program : run.steps) {
    if (!program.is_of_full_step()) continue;
    PlannedMicroBatch micro_batch;
    micro_batch.shape = program.shape;
    micro_batch.times = program.times;
    options.lower.rows_ahead = program.takes_rows_ahead;
    micro_batch.program =
        compiled(training_graph(program.shape, run.phases.front().thawed)->graph, options);
    const Lowered& lowered = micro_batch.program.lowered;
    micro_batch.simulation = simulate(micro_batch.program.plan, lowered, profiles);
    // The first program with a state decides its layout in memory.
    add_layouts(lowered, options.lower.fixed_layouts);
    add_cache_costs(policy, lowered, micro_batch.program.plan, of_caches, program.times,
                    step.caches);
    memory.add_of_phase(lowered, micro_batch.program.plan);
    step.add(std::move(micro_batch), imported().graph);
  }
  if (programs == PlannedPrograms::run) add_other_programs(run, options, memory);
  step.set_memory(memory.uses(), policy, devices);
  return step;
}

}  // namespace tandem::api
