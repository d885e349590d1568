#include "engine/train/graph/training_graph.h"

#include <string_view>
#include <unordered_set>

#include "engine/config/keys/config_names.h"
#include "engine/config/keys/config_value.h"
#include "engine/graph/error.h"
#include "engine/graph/rewrite.h"
#include "engine/passes/pass.h"
#include "engine/train/algorithm/algorithm_graph.h"
#include "engine/train/graph/loss_scale.h"
#include "engine/train/graph/training_build.h"
#include "engine/train/sharding/shard_tables.h"
#include "engine/train/sharding/synchronise_batch_norm.h"

namespace tandem {
namespace {

struct Stage {
  void (*add)(TrainingBuild& build);
  bool ends_step = false;  // only the last micro-batch of a step has it
};

/// From the forward graph with its losses to the training graph.
constexpr Stage stages[] = {
    // First: ranks sum the losses, and outputs of the model are gone.
    {name_losses},
    // Before the gradients: they are made for what trains.
    {choose_what_trains},
    {add_gradients},
    // After the gradients, which show whether only rows of a table get one. Sums over micro-batches
    // are a part of it: several micro-batches make a gradient dense.
    {choose_updates},
    // Before everything that looks at gradients: from here on they are those of all ranks.
    {sum_over_ranks, true},
    {add_learning_rates, true},
    // Before clipping: the norm of what the step has computed.
    {add_gradient_norms, true},
    // Right before the updates: the loss scale skips a step by the gradients of all ranks.
    {scale_and_clip, true},
    {add_updates, true},
    // After the updates: averages are of the new weights.
    {add_averages, true},
    // Last: the norm of what the updates have changed.
    {add_update_norms, true},
};

/// Metrics find the values of a term by name, too.
void refuse_values_named_as_losses(const LossConfig& config, const Graph& forward) {
  std::unordered_set<std::string> losses{"loss"};
  for (const LossTerm& term : config.terms) losses.insert("loss." + term.name);
  for (const LossTerm& term : config.terms) {
    const std::string& name = term.values[0];
    if (term.labels.empty() || !losses.contains(name) || forward.find_output(name) == nullptr)
      continue;
    Diagnostic d =
        at(term.where, "loss." + term.name,
           "the model's output \"" + name + "\" has the name of a loss of the evaluation");
    d.fix = "rename the output \"" + name + "\" of the model";
    throw Error(ErrorKind::usage, std::move(d));
  }
}

/// Folds constants: the gradient's seed and the weights of terms are constants, and what depends
/// only on them is computed once.
Graph folded(Graph graph, const OperatorSet& operators, const Evaluator& evaluate) {
  if (!evaluate) return graph;
  PassContext context{operators, evaluate, {}, {}};
  context.most_constant_bytes = 64u << 10;
  graph = simplify(fold_constants(graph, context), context);
  return remove_dead(graph, operators);
}

[[noreturn]] void refuse_name(const std::string& name) {
  throw Error(
      ErrorKind::usage,
      Diagnostic{.message = "a parameter of the model has the name of a state that training adds",
                 .path = name,
                 .fix = "rename the initializer \"" + name + "\" of the model"});
}

// Values of states are found by their names.
void check_state_names(const Graph& graph) {
  std::unordered_set<std::string_view> names;
  for (const State& state : graph.states) {
    if (names.insert(state.name).second) continue;
    refuse_name(state.name);
  }
}

// The loss scale's states are read, reported and restored by their names, whether a run has a scale
// or not.
void check_loss_scale_names(const Graph& forward) {
  for (const State& state : forward.states) {
    if (is_loss_scale_state(state.name)) refuse_name(state.name);
  }
}

[[noreturn]] void refuse_algorithm_on_ranks() {
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "a model with training_info trains only in one process",
                         .fix = "start it without mpirun, or name loss and optimizer in train.toml "
                                "with the forward model"});
}

/// The forward graph as several ranks compute it, except for its products.
Graph of_ranks(const OperatorSet& operators, const Graph& forward, const TrainingRequest& request) {
  const RankShares& ranks = request.ranks;
  if (!ranks.several()) return forward;
  Graph graph = shard_tables(operators, forward, request.shards, ranks);
  if (!request.config->model.sync_batch_norm) return graph;
  return synchronise_batch_norm(operators, graph, ranks.ranks);
}

TrainingGraph build_own_algorithm(const OperatorSet& operators, const Graph& forward,
                                  const TrainingRequest& request) {
  if (request.ranks.several()) refuse_algorithm_on_ranks();
  TrainingGraph own = build_algorithm_graph(operators, forward, request);
  check_state_names(own.graph);
  own.graph = folded(std::move(own.graph), operators, request.evaluate);
  return own;
}

}  // namespace

TrainingGraph build_training_graph(const OperatorSet& operators, const Graph& forward,
                                   const TrainingRequest& request) {
  check_loss_scale_names(forward);
  if (request.algorithm != nullptr) return build_own_algorithm(operators, forward, request);
  TrainingBuild build(operators,
                      with_loss(operators, of_ranks(operators, forward, request), request, false),
                      request);
  for (const Stage& stage : stages) {
    if (build.ends_step() || !stage.ends_step) stage.add(build);
  }
  check_state_names(build.g.graph());
  build.result.graph = folded(build.g.finish(), operators, request.evaluate);
  return std::move(build.result);
}

Graph build_evaluation_graph(const OperatorSet& operators, const Graph& forward,
                             const TrainingRequest& request) {
  Graph own = shard_tables(operators, forward, request.shards, request.ranks);
  if (request.algorithm != nullptr) {
    GraphBuilder g(operators, std::move(own));
    const Loss loss = algorithm_loss(g, *request.algorithm, request.config->loss);
    g.graph().outputs.clear();
    RankSums alone(g, {});
    name_loss(g, loss, alone);
    return remove_dead(g.finish(), operators);
  }
  refuse_values_named_as_losses(request.config->loss, forward);
  GraphWithLoss made = with_loss(operators, std::move(own), request, true);
  GraphBuilder g(operators, std::move(made.graph));
  RankSums alone(g, {});
  name_loss(g, made.loss, alone);
  return g.finish();
}

Graph keep_named_values(Graph forward, const RunConfig& config) {
  for (const LossTerm& term : config.loss.terms) {
    std::vector<std::string> names = term.values;
    if (names_teacher(term.labels)) names.push_back(term.labels);
    for (const std::string& name : names) {
      if (forward.find_output(name) != nullptr) continue;
      if (const ValueId value = forward.find_value(name)) forward.outputs.push_back({name, value});
    }
  }
  return forward;
}

}  // namespace tandem
