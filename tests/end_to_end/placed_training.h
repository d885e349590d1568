// A model in training under a policy, with access to its devices' counters and its monitor.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/model/model.h"
#include "engine/train/graph/training_graph.h"
#include "kernels/cpu/cpu_device.h"
#include "tests/harness/rank_threads.h"

namespace tandem::testing {

struct PlacedOptions {
  /// If false, the devices' monitor records only times, and allocates nothing in a step.
  bool check_order = true;
  /// Rows of tables may be fetched a step ahead: `step` gets the next feeds.
  bool rows_ahead = false;
  /// How long kernels take on the virtual clock, per device; empty: estimated.
  std::vector<DeviceProfile> profiles;
  /// Passes over the forward graph to leave out.
  std::vector<std::string> without;
  /// Passes of lowering to leave out.
  std::vector<std::string> lower_without;
  /// The policy may read the configured data to see which rows of tables are looked up.
  bool counts_rows = false;
  /// What the command line would add, and the function that makes accelerators.
  api::PlacingArguments placing = {};
  /// The ranks that this one trains with; each is fed whole steps and takes its share of them.
  std::shared_ptr<RankGroup> ranks = nullptr;
};

class PlacedTraining {
 public:
  using Feeds = std::map<std::string, HostTensor>;

  /// `settings` are keys of train.toml: "optimizer.kind=adamw", "policy=..."; `feeds` give the
  /// types. With "micro_batch=..." a step has several micro-batches.
  PlacedTraining(const std::string& model, std::int64_t batch,
                 const std::vector<std::string>& settings, const Feeds& feeds,
                 PlacedOptions options = {})
      : config_(config_of(model, batch, settings)),
        engine_(engine_of(config_.threads, options)),
        model_(std::make_shared<api::ConfiguredModel>(*engine_, config_)),
        data_(model_),
        placed_(model_, api::read_run_policy(config_, options.placing), options.placing,
                options.counts_rows ? &data_ : nullptr),
        parts_(placed_.run_parts()),
        group_(options.ranks) {
    const auto arenas = make_arenas();
    for (Device* device : parts_.devices) {
      if (group_) device->join(group_->make_communicator());
    }
    parts_.options.lower.rows_ahead = options.rows_ahead;
    parts_.options.lower.disabled_passes = options.lower_without;
    parts_.options.profiles = options.profiles;
    for (const MicroBatchShape& shape :
         needed_shapes(batch, batch, config_.micro_batch_size(), false)) {
      TrainingRequest request;
      request.config = &config_;
      request.kind = shape.kind;
      const std::int64_t own = share_of(shape.micro_batch).count;
      request.samples = {own, shape.step};
      if (group_) {
        const std::int64_t most = tandem::share_of(shape.micro_batch, {0, group_->ranks()}).count;
        request.ranks = {group_->ranks(), own, most, group_->rank()};
        request.shards = shardings_of(placed_.resolved());
      }
      request.evaluate = engine_->evaluate;
      std::vector<std::string> names;
      for (const auto& [name, tensor] : feeds) {
        request.fields[name] = tensor.type();
        request.fields[name].shape[0] = own;
        names.push_back(name);
      }
      const TrainingGraph training =
          build_training_graph(engine_->operators, forward(own, options.without), request);
      programs_[shape.kind] = bind_program(training, parts_, states_, arenas, names);
      graphs_[shape.kind] = training.graph;
    }
    micro_batches_ = batch / config_.micro_batch_size();
    batch_ = batch;
  }

  /// Runs a step and returns the loss; devices may still be working. `next`: the next step's feeds,
  /// if they are known.
  double step(const Feeds& feeds, const Feeds* next = nullptr) {
    ++steps_;
    double loss = 0;
    for (std::int64_t micro_batch = 0; micro_batch < micro_batches_; ++micro_batch)
      loss += run_micro_batch(feeds, micro_batch, next);
    return loss;
  }

  /// `launch` and `finish` do the same in two calls, for steps of one micro-batch: other steps may
  /// be launched in between, as many as `program().steps_in_flight()` says.
  void launch(const Feeds& feeds, const Feeds* next = nullptr) {
    ++steps_;
    launch_micro_batch(feeds, 0, next);
  }
  /// An output of the step that finished last.
  float output(const std::string& name) const {
    const BoundProgram& bound = programs_.at(kind_of(micro_batches_ - 1));
    return *static_cast<const float*>(bound.program->output(bound.output(name), finished_ - 1));
  }
  /// With several ranks: what this one says about stopping, from the next step on.
  float stop = 0;
  /// Waits for the oldest launched step and returns its loss.
  double finish() { return finish_micro_batch(MicroBatchKind::whole); }

  void synchronize() {
    for (Device* device : devices()) device->synchronize();
  }

  /// The program of a whole step, or of its last micro-batch.
  const Program& program() const {
    return *programs_.at(micro_batches_ == 1 ? MicroBatchKind::whole : MicroBatchKind::last)
                .program;
  }
  /// That program's graph before lowering.
  const Graph& graph() const {
    return graphs_.at(micro_batches_ == 1 ? MicroBatchKind::whole : MicroBatchKind::last);
  }
  std::vector<const Program*> programs() const {
    std::vector<const Program*> all;
    for (const auto& [kind, bound] : programs_) all.push_back(bound.program.get());
    return all;
  }
  const std::vector<Device*>& devices() const { return parts_.devices; }
  StateStore& states() { return states_; }
  OrderChecker& monitor() { return *engine_->monitor; }

 private:
  static RunConfig config_of(const std::string& model, std::int64_t batch,
                             const std::vector<std::string>& settings) {
    std::vector<std::string> overrides{"model=\"" + model + "\"",
                                       "batch_size=" + std::to_string(batch)};
#if defined(__SANITIZE_THREAD__)
    overrides.push_back("threads=1");  // the sanitizer does not see libgomp's barriers
#endif
    overrides.insert(overrides.end(), settings.begin(), settings.end());
    return parse_run_config("steps = 1\n", model + ".toml", overrides);
  }

  static std::unique_ptr<api::Engine> engine_of(int threads, PlacedOptions options) {
    auto engine = std::make_unique<api::Engine>(threads);
    if (options.check_order) return engine;
    engine->monitor = std::make_shared<OrderChecker>(false);
    engine->cpu = make_cpu_device(threads, engine->monitor);
    return engine;
  }

  SampleShare share_of(std::int64_t count) const {
    return group_ ? tandem::share_of(count, {group_->rank(), group_->ranks()})
                  : SampleShare{0, count};
  }

  Graph forward(std::int64_t batch, const std::vector<std::string>& without) {
    if (without.empty()) return placed_.forward(batch, true);
    PassContext context{engine_->operators, engine_->evaluate, {}, {}};
    return run_passes(keep_named_values(model_->imported(batch, true).graph, config_), context,
                      without);
  }

  MicroBatchKind kind_of(std::int64_t micro_batch) const {
    if (micro_batches_ == 1) return MicroBatchKind::whole;
    if (micro_batch == 0) return MicroBatchKind::first;
    return micro_batch + 1 == micro_batches_ ? MicroBatchKind::last : MicroBatchKind::middle;
  }

  double run_micro_batch(const Feeds& feeds, std::int64_t micro_batch, const Feeds* next) {
    launch_micro_batch(feeds, micro_batch, next);
    return finish_micro_batch(kind_of(micro_batch));
  }

  double finish_micro_batch(MicroBatchKind kind) {
    const BoundProgram& bound = programs_.at(kind);
    bound.program->finish(finished_);
    return *static_cast<const float*>(bound.program->output(bound.loss_output, finished_++));
  }

  void launch_micro_batch(const Feeds& feeds, std::int64_t micro_batch, const Feeds* next) {
    const BoundProgram& bound = programs_.at(kind_of(micro_batch));
    Program& program = *bound.program;
    const Graph& graph = program.lowered().graph;
    const std::int64_t count = batch_ / micro_batches_;
    const SampleShare share = share_of(count);
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const auto found = feeds.find(graph.inputs[i].name);
      if (found == feeds.end()) continue;
      const auto bytes = static_cast<std::int64_t>(found->second.bytes()) / batch_;  // in a sample
      std::memcpy(program.input_slot(static_cast<int>(i), ticket_),
                  static_cast<const std::byte*>(found->second.data()) +
                      (micro_batch * count + share.first) * bytes,
                  static_cast<std::size_t>(share.count * bytes));
    }
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      if (graph.inputs[i].name != stop_flag) continue;
      std::memcpy(program.input_slot(static_cast<int>(i), ticket_), &stop, sizeof stop);
    }
    for (const auto& [input, data] : bound.next_inputs) {  // only in steps of one micro-batch
      const HostTensor& ids = (next != nullptr ? *next : feeds).at(graph.inputs[data].name);
      std::memcpy(program.input_slot(input, ticket_), ids.data(), ids.bytes());
    }
    const auto number = static_cast<std::int64_t>(steps_);
    if (bound.step_input >= 0)
      std::memcpy(program.input_slot(bound.step_input, ticket_), &number, sizeof number);
    for (const auto& [input, rate] : bound.learning_rates) {
      const auto lr = static_cast<float>(rate.base);
      std::memcpy(program.input_slot(input, ticket_), &lr, sizeof lr);
    }
    StepContext context;
    context.seed = config_.seed;
    context.step = steps_;
    context.micro_batch = static_cast<std::uint64_t>(micro_batch);
    context.first_sample = static_cast<std::uint64_t>(share.first);
    program.launch(context, ticket_);
    ++ticket_;
  }

  RunConfig config_;
  std::unique_ptr<api::Engine> engine_;
  std::shared_ptr<api::ConfiguredModel> model_;
  api::ModelData data_;
  api::PlacedModel placed_;
  RunParts parts_;
  const std::shared_ptr<RankGroup> group_;
  StateStore states_;
  std::map<MicroBatchKind, BoundProgram> programs_;
  std::map<MicroBatchKind, Graph> graphs_;
  std::int64_t micro_batches_ = 1, batch_ = 1;
  std::uint64_t steps_ = 0, ticket_ = 0, finished_ = 0;
};

}  // namespace tandem::testing
