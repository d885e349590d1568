// From a forward graph to a training graph: loss, gradients, accumulation, clipping and updates.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/passes/pass.h"
#include "engine/train/averages/averaged_weights.h"
#include "engine/train/graph/add_losses.h"
#include "engine/train/graph/rank_sums.h"

namespace tandem {

struct TrainingAlgorithm;  // engine/train/algorithm/algorithm.h

/// The place of a micro-batch in its optimizer step.
enum class MicroBatchKind : std::uint8_t {
  whole,   // the step is this one micro-batch
  first,   // gradients start the sums
  middle,  // gradients are added
  last,    // gradients are added, then the update
};

/// Steps of a run in which parameters were not trained, by name (optimizers/missed_steps.h).
using MissedStepCounts = std::map<std::string, std::int64_t>;

struct TrainingRequest {
  const RunConfig* config = nullptr;
  FieldTypes fields;
  MicroBatchKind kind = MicroBatchKind::whole;
  /// For several ranks: this one's share of the micro-batch, and the whole step.
  StepSamples samples;
  RankShares ranks;
  Shardings shards;  // for several ranks
  /// By rule of parameters.freeze: it does not hold in this step; a rule without an entry holds.
  std::vector<bool> thawed;
  /// Steps missed by the parameters that train: their optimizers' steps are those of the run less
  /// these.
  MissedStepCounts missed_steps;
  Evaluator evaluate;  // empty: arithmetic on constants stays in the graph
  /// The model's own algorithm; null: loss and optimizer of the configuration.
  std::shared_ptr<const TrainingAlgorithm> algorithm = nullptr;
};

/// A learning rate that is fed each step: the factor of its schedule times `base`.
struct LearningRate {
  std::string input;
  double base = 0;
  int schedule = 0;  // number in Schedules
};

struct TrainingGraph {
  Graph graph;  // outputs: "loss", "loss.NAME" per term that is not the loss itself,
                // "gradient_norm" where clipped, those of engine/train/graph/loss_scale.h;
                // with several ranks summed over all, and "ranks.stop"
  std::vector<std::string> terms;
  std::vector<LearningRate> learning_rates;
  std::vector<FedDenominator> denominators;
  std::vector<FedAverage> averages;
  std::vector<std::string> norms;  // outputs of log.norms
  std::vector<std::string> notes;  // "fc9:weight gets no gradient", ...
};

/// Fed inputs besides the data: "optimizer.step" (int64 scalar), learning rates, denominators,
/// rates of averages.
inline constexpr const char* step_input = "optimizer.step";
/// With several ranks: a float32 scalar that each feeds, and an output, its sum over all of them. A
/// rank that wants to stop feeds 1, and all see it in the same step.
inline constexpr const char* stop_flag = "ranks.stop";

/// Throws Error{usage}: nothing trainable, missing gradients, unknown selectors (nearest name
/// given).
TrainingGraph build_training_graph(const OperatorSet& operators, const Graph& forward,
                                   const TrainingRequest& request);

/// The forward graph with its loss as outputs "loss" and "loss.NAME", as above; for evaluation.
/// Terms whose fields are missing are an error. `forward` was imported in inference form. With
/// several ranks each has the loss of its own samples, and shards tables and matrices of `shards`
/// as in training.
Graph build_evaluation_graph(const OperatorSet& operators, const Graph& forward,
                             const TrainingRequest& request);

/// Makes values that the configuration names survive the micro-batches: they become outputs.
Graph keep_named_values(Graph forward, const RunConfig& config);

}  // namespace tandem
