#include "api/policy/policy_case.h"

#include <algorithm>
#include <limits>

#include "api/model/sample_loss.h"
#include "api/path_value.h"
#include "api/policy/batch_size.h"
#include "api/timing/measure_kernels.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"
#include "engine/plan/simulate.h"
#include "engine/training/config/config_value.h"
#include "engine/training/data/buckets/buckets.h"
#include "engine/training/data/buckets/cut_source.h"
#include "engine/training/evaluation.h"
#include "importer/batch/fixed_batch.h"
#include "kernels/emulated/emulated_device.h"
#include "placement/report/data_sheets.h"
#include "placement/report/fit.h"

namespace tandem::api {
namespace {

RunConfig config_of(const PolicyOptions& options) {
  std::vector<std::string> overrides;
  if (!options.policy.empty()) overrides.push_back("policy=" + path_value(options.policy));
  overrides.insert(overrides.end(), options.overrides.begin(), options.overrides.end());
  if (options.config.empty() == options.model.empty()) {
    throw Error(ErrorKind::usage,
                Diagnostic{.message = "which model the policy is for",
                           .expected = "a train.toml (--config) or an ONNX file (--model)",
                           .got = options.config.empty() ? "neither" : "both",
                           .fix = "tandem policy --help has examples"});
  }
  if (!options.config.empty())
    return with_batch_size(read_run_config(options.config, overrides), options);
  std::string model = "model={ file = " + path_value(options.model) + ", bind = {";
  const OnnxFile file = OnnxFile::open(options.model);
  std::int64_t batch = std::max<std::int64_t>(1, fixed_batch(file));
  for (const auto& [name, extent] : options.bind) {
    if (name == "batch") {  // batch_size says it, of which a rank has a share
      batch = extent;
      continue;
    }
    model += " " + text_value(name) + " = " + std::to_string(extent) + ",";
  }
  if (model.back() == ',') model.pop_back();
  if (!has_training_info(file)) overrides.insert(overrides.begin(), "optimizer={ kind = \"sgd\" }");
  overrides.insert(overrides.begin(), {model + " } }", "batch_size=" + std::to_string(batch)});
  return parse_run_config("steps = 1\n", normal_path("train.toml"), overrides);
}

int ranks_of(const PolicyOptions& options) {
  if (options.ranks >= 1) return options.ranks;
  throw Error(ErrorKind::usage, Diagnostic{.message = "the number of ranks",
                                           .expected = "1 or more",
                                           .got = std::to_string(options.ranks)});
}

/// Each shape of a full step with its number of micro-batches.
std::vector<std::pair<MicroBatchShape, std::int64_t>> step_shapes(const RunConfig& config,
                                                                  const RankPlace& place) {
  std::vector<std::pair<MicroBatchShape, std::int64_t>> shapes;
  const std::vector<MicroBatchShape> needed =
      needed_shapes(config.batch_size, config.batch_size, config.micro_batch_size(), false, place);
  refuse_small_shares(needed, config, place.ranks);
  for (const MicroBatchShape& shape : needed) {
    const std::int64_t micro_batches = config.batch_size / config.micro_batch_size();
    shapes.emplace_back(shape, shape.kind == MicroBatchKind::middle ? micro_batches - 2 : 1);
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

std::vector<DeviceProfile> device_profiles(const PlacedModel& placed) {
  std::vector<DeviceProfile> profiles;
  for (std::size_t d = 0; d < placed.devices().size(); ++d)
    profiles.push_back(profile_of(*placed.devices()[d], placed.resolved().devices[d]));
  return profiles;
}

DeviceProfile cache_profile_of(const Device& device, const ResolvedDevice& resolved,
                               const DeviceProfiles& stored) {
  DeviceProfile profile = profile_of(device, resolved, stored);
  if (resolved.is_cuda() && !stored.contains(resolved.name)) {
    profile.flops = profile.bandwidth = std::numeric_limits<double>::infinity();
    profile.overhead = 0;
  }
  return profile;
}

PolicyCase::PolicyCase(const PolicyOptions& options, PlacingArguments placing, CaseOptions reads)
    : config_(config_of(options)),
      reads_(reads),
      place_{0, ranks_of(options)},
      from_model_(options.config.empty()) {
  if (!options.profile.empty()) {
    const PrecisionConfig& precision = config_.precision;
    profiles_ = named_profiles(options.profile, precision.compute, precision.tf32);
  }
  if (!options.network.empty()) network_ = parse_network(options.network);
  if (network_ && place_.ranks == 1) {
    throw Error(ErrorKind::usage, Diagnostic{.message = "--network lies between ranks",
                                             .expected = "--ranks N, of more than one",
                                             .got = "one process"});
  }
  if (reads.policy) {
    placing_ = std::move(placing);
    std::vector<DeviceBinding> of_profile;  // the first say most
    add_stand_ins(profiles_, of_profile);
    placing_.stand_ins.insert(placing_.stand_ins.begin(), of_profile.begin(), of_profile.end());
  } else {
    config_.policy.clear();
    config_.device = "cpu";
  }
  policy_ = read_run_policy(config_, placing_);
  engine_ = std::make_unique<Engine>(policy_.threads);
  model_ = std::make_shared<Model>(*engine_, config_);
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

void PolicyCase::replace_policy(const std::string& text) {
  placed_.reset();
  placing_.text = text;
  policy_ = read_run_policy(config_, placing_);
}

void PolicyCase::with_rule(const std::string& rule, const std::function<void()>& look) {
  struct PutBack {
    PolicyCase& of;
    std::unique_ptr<PlacedModel> placed;  // whose devices earlier plans name
    RunPolicy policy;
    ~PutBack() {
      of.placing_.place.pop_back();
      of.policy_ = std::move(policy);
      of.placed_ = std::move(placed);
    }
  };
  placing_.place.push_back(rule);
  const PutBack put_back{*this, std::move(placed_), policy_};
  policy_ = read_run_policy(config_, placing_);
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

TrainingGraph PolicyCase::training() {
  resolved();  // what is wrong in the policy is said before what is wrong in the data
  return training_graph(step_shapes(config_, place_).back().first, data().train.get());
}

TrainingGraph PolicyCase::training_graph(const MicroBatchShape& shape, const DataSource* source) {
  Graph forward = placed().forward(shape.micro_batch, true, shape.length);
  TrainingRequest request;
  request.config = &config_;
  request.kind = shape.kind;
  request.samples = {shape.micro_batch, shape.step};
  if (place_.ranks > 1) {
    request.ranks = {place_.ranks, shape.micro_batch, shape.micro_batch, place_.rank};
    request.shards = shardings_of(placed().resolved());
  }
  request.evaluate = engine_->evaluate;
  request.fields =
      source ? field_types(*source, shape.micro_batch) : guessed_fields(config_, forward);
  request.algorithm = placed().model().algorithm(shape.micro_batch, true);
  if (from_model_ && config_.loss.terms.empty() && request.algorithm == nullptr)
    forward = with_sample_loss(*engine_, forward);
  TrainingGraph training = build_training_graph(engine_->operators, forward, request);
  if (source) check_fed_inputs(training, config_, request.fields);
  return training;
}

void PolicyCase::add_other_programs(const PlannedStep& step, const ProgramOptions& options,
                                    RunMemory& memory) {
  const DataSets& data = this->data();
  const auto add = [&](const Graph& graph, bool rows_ahead) {
    ProgramOptions own = options;
    own.lower.rows_ahead = rows_ahead;
    memory.add(compile_program(graph, placed().place(graph), engine_->operators, devices(), own));
  };
  if (data.train) {
    const std::int64_t samples = data.epoch_samples(), micro_batch = config_.micro_batch_size();
    const bool drop_last = config_.data && config_.data->drop_last;
    const std::vector<MicroBatchShape> shapes =
        needed_shapes(samples, config_.batch_size, micro_batch, drop_last, place_);
    for (const MicroBatchShape& shape : shapes) {
      if (std::any_of(step.micro_batches.begin(), step.micro_batches.end(),
                      [&](const PlannedMicroBatch& known) { return known.shape == shape; }))
        continue;
      const bool ends_full_step =
          place_.ranks == 1 && shape.step == std::min(config_.batch_size, samples) &&
          (shape.kind == MicroBatchKind::whole || shape.kind == MicroBatchKind::last);
      add(training_graph(shape, data.train.get()).graph, ends_full_step);
    }
    // Full steps have all lengths; what was planned above has the longest.
    for (std::size_t i = 0; data.buckets && i + 1 < data.buckets->lengths.size(); ++i) {
      const std::int64_t length = data.buckets->lengths[i];
      const auto source = cut_source(data.train, data.buckets->fields, length);
      for (MicroBatchShape shape : shapes) {
        if (shape.step != config_.batch_size) continue;
        shape.length = length;
        add(training_graph(shape, source.get()).graph, false);
      }
    }
  }
  if (!data.eval) return;
  const std::int64_t samples = data.eval->samples(), micro_batch = config_.micro_batch_size();
  std::vector<std::int64_t> sizes{std::min(micro_batch, samples), samples % micro_batch};
  if (sizes[0] == sizes[1]) sizes.pop_back();
  for (const std::int64_t size : sizes) {
    if (size == 0) continue;
    TrainingRequest request;
    request.config = &config_;
    request.fields = field_types(*data.eval, size);
    request.algorithm = placed().model().algorithm(size, false);
    request.samples = {size, config_.loss.terms.empty() ? size : samples};
    if (place_.ranks > 1) {
      request.ranks = {place_.ranks, size, size, place_.rank};
      request.shards = shardings_of(placed().resolved());
    }
    add(build_evaluation_graph(engine_->operators, placed().forward(size, false), request), false);
  }
}

PlannedStep PolicyCase::plan(PlannedPrograms programs) {
  const ResolvedPolicy& policy = resolved();
  const DataSets& data = this->data();
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
  for (const auto& [shape, times] : step_shapes(config_, place_)) {
    const TrainingGraph training = training_graph(shape, data.train.get());
    PlannedMicroBatch micro_batch;
    micro_batch.shape = shape;
    micro_batch.times = times;
    options.lower.rows_ahead = place_.ranks == 1 && (shape.kind == MicroBatchKind::whole ||
                                                     shape.kind == MicroBatchKind::last);
    micro_batch.program = compile_program(training.graph, placed().place(training.graph),
                                          engine_->operators, devices, options);
    const Lowered& lowered = micro_batch.program.lowered;
    micro_batch.simulation = simulate(micro_batch.program.plan, lowered, profiles);
    if (step.micro_batches.empty()) {  // the first program fixes how states lie in memory
      for (std::size_t s = 0; s < lowered.states.size(); ++s) {
        options.lower.fixed_layouts.emplace_back(lowered.graph.states[s].name,
                                                 lowered.states[s].layout);
      }
    }
    add_cache_costs(policy, lowered, micro_batch.program.plan, of_caches, times, step.caches);
    memory.add(micro_batch.program);
    step.add(std::move(micro_batch), imported().graph);
  }
  if (programs == PlannedPrograms::run) {
    try {
      add_other_programs(step, options, memory);
    } catch (const Error& error) {  // a size that the model does not take: the run itself says so
      if (error.kind() != ErrorKind::usage) throw;
    }
  }
  step.set_memory(memory.uses(), policy, devices);
  return step;
}

}  // namespace tandem::api
