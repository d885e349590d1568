// The updates of a step, with their learning rates, the averages of weights and the norms that are
// logged.
#include <algorithm>

#include "engine/graph/parameter_names.h"
#include "engine/train/graph/training_build.h"
#include "engine/train/updates/learning_rate_factors.h"

namespace tandem {
namespace {

class LearningRates {
 public:
  explicit LearningRates(GraphBuilder& g) : g_(g) {}
  /// `schedule`: its number in Schedules.
  ValueId of(double base, int schedule) {
    const std::pair<double, int> wanted(base, schedule);
    const auto found = inputs_.find(wanted);
    if (found != inputs_.end()) return found->second;
    const std::string name =
        inputs_.empty() ? "optimizer.lr" : "optimizer.lr." + std::to_string(inputs_.size());
    const ValueId input = g_.input(name, TensorType{DType::float32, {}});
    inputs_.emplace(wanted, input);
    list.push_back({name, base, schedule});
    return input;
  }
  std::vector<LearningRate> list;

 private:
  GraphBuilder& g_;
  std::map<std::pair<double, int>, ValueId> inputs_;
};

/// The step's number for parameters that have missed some steps: made once for all that have missed
/// equally many.
class StepNumbers {
 public:
  StepNumbers(GraphBuilder& g, ValueId step, const MissedStepCounts& missed)
      : g_(g), step_(step), missed_(missed) {}
  ValueId of(const State& parameter) {
    const auto found = missed_.find(parameter.source<CachedRows>());
    if (found == missed_.end()) return step_;
    ValueId& own = made_[found->second];
    if (!own) {
      g_.set_scope({step_input, Phase::update, {}});
      own = g_.sub(step_, g_.constant(HostTensor::from<std::int64_t>({}, {found->second})));
    }
    return own;
  }

 private:
  GraphBuilder& g_;
  ValueId step_;
  const MissedStepCounts& missed_;
  std::map<std::int64_t, ValueId> made_;
};

// Without the averages of parameters that all rest in this phase: they begin when these train.
OptimizerConfig averages_of_now(OptimizerConfig config, const Graph& graph,
                                const std::vector<UpdateRequest>& updates,
                                const std::vector<State>& resting) {
  if (resting.empty()) return config;
  const ParameterNames names(graph);
  const auto leave_out = [&](auto& average) {
    if (!average) return;
    const Selector selector(average->at);
    const bool is_now = std::any_of(updates.begin(), updates.end(), [&](const auto& update) {
      return names.covers(selector, update.parameter);
    });
    const bool is_later = std::any_of(resting.begin(), resting.end(), [&](const State& state) {
      return names.covers(selector, state);
    });
    if (!is_now && is_later) average.reset();
  };
  leave_out(config.ema);
  leave_out(config.swa);
  leave_out(config.lookahead);
  return config;
}

}  // namespace

void sum_over_ranks(TrainingBuild& build) {
  for (UpdateRequest& update : build.requests) {
    if (update.shares_states && !update.parameter.shard)
      build.state_shards.cut(update, false);
    else
      build.ranks.sum(update);
  }
}

void add_learning_rates(TrainingBuild& build) {
  const OptimizerConfig& optimizer = build.config().optimizer;
  LearningRates rates(build.g);
  rates.of(optimizer.base.lr, 0);
  const Schedules schedules(optimizer, {});
  for (UpdateRequest& update : build.requests)
    update.lr = rates.of(update.options.lr, schedules.of_group(update.group));
  build.result.learning_rates = std::move(rates.list);
}

void add_gradient_norms(TrainingBuild& build) {
  GraphBuilder& g = build.g;
  g.set_scope({"optimizer.scale", Phase::update, {}});
  build.scales.all.step = g.input(step_input, TensorType{DType::int64, {}});
  build.scales.all.skip = g.scalar(0, DType::boolean);
  build.scales.all.scale = g.scalar(1.0, DType::float32);
  build.resting = resting_parameters(g.graph(), build.request);
  build.norms.emplace(g, build.ranks, build.config().log, build.requests, build.resting,
                      [&](const State& parameter) { return build.find_split(parameter); });
  build.norms->add_gradients(build.updates, build.requests, build.loss_scale);
}

void add_updates(TrainingBuild& build) {
  build.norms->keep_parameters();
  StepNumbers steps(build.g, build.scales.all.step, build.request.missed_steps);
  for (std::size_t i = 0; i < build.requests.size(); ++i) {
    const UpdateRequest& update = build.requests[i];
    UpdateScalars own = build.scales.all;
    own.step = steps.of(update.parameter);
    if (build.scales.own[i]) own.scale = build.scales.own[i];
    Updates::Gather gather;
    if (update.shares_states)
      gather = [&](ValueId part) { return build.state_shards.gathered(update, part); };
    const ValueId made = build.updates.add(update, own, gather);
    if (update.shares_states && made) build.state_shards.put_together(update, made);
  }
}

void add_averages(TrainingBuild& build) {
  std::vector<std::string> split_names;
  for (const SplitTable& split : build.tables.split) split_names.push_back(split.name);
  const OptimizerConfig config =
      averages_of_now(build.config().optimizer, build.g.graph(), build.requests, build.resting);
  build.result.averages = add_averages(build.g, config, build.requests, split_names);
}

void add_update_norms(TrainingBuild& build) {
  build.norms->add_updates();
  build.result.norms = build.norms->names();
}

}  // namespace tandem
