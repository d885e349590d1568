// A training graph while its stages add to it; only for the files of this folder.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/graph/builder.h"
#include "engine/train/graph/graph_with_loss.h"
#include "engine/train/graph/rank_sums.h"
#include "engine/train/graph/training_graph.h"
#include "engine/train/sharding/state_shards.h"
#include "engine/train/tables/fixed_rows.h"
#include "engine/train/tables/table_storage.h"
#include "engine/train/updates/add_update.h"
#include "engine/train/updates/gradient_clipping.h"
#include "engine/train/updates/parameter_choice.h"
#include "engine/train/updates/update_norms.h"

namespace tandem {

/// A parameter that trains, with its gradient; without a value it does not reach the loss.
struct TrainedParameter {
  Chosen chosen;
  ValueId gradient;
};

/// What all gradients of a step are multiplied with, and one of them in addition.
struct UpdateScales {
  UpdateScalars all;
  std::vector<ValueId> own;  // by update; without a value: none
};

/// Tables that are not updated like others.
struct SpecialTables {
  std::vector<SplitTable> split;  // with split storage
  std::vector<FixedRows> fixed;   // with rows that no update changes
};

struct TrainingBuild {
  const TrainingRequest& request;
  GraphBuilder g;
  Loss loss;
  TrainingGraph result;
  RankSums ranks{g, request.ranks};
  StateShards state_shards{g, request.ranks, request.shards};
  GradientClipping clipping{g, request.config->optimizer};
  Updates updates{g};
  std::vector<TrainedParameter> parameters;
  SpecialTables tables;
  ValueId loss_scale;                   // without a value: gradients are not scaled
  std::vector<UpdateRequest> requests;  // for the parameters that reach the loss
  std::vector<State> resting;           // parameters that train in other steps of the run
  UpdateScales scales;
  std::optional<UpdateNorms> norms;

  TrainingBuild(const OperatorSet& operators, GraphWithLoss made, const TrainingRequest& of_step)
      : request(of_step), g(operators, std::move(made.graph)), loss(std::move(made.loss)) {}

  const RunConfig& config() const { return *request.config; }
  bool ends_step() const {
    return request.kind == MicroBatchKind::whole || request.kind == MicroBatchKind::last;
  }
  const SplitTable* find_split(const State& parameter) const {
    return find_split_table(tables.split, parameter);
  }
  /// The sum of squares of each update's gradient, over all ranks.
  std::vector<ValueId> sums_of_squares();
};

// The stages, in their order; training_graph.cpp says why it is this one.
void name_losses(TrainingBuild& build);
void choose_what_trains(TrainingBuild& build);
void add_gradients(TrainingBuild& build);
void choose_updates(TrainingBuild& build);
void sum_over_ranks(TrainingBuild& build);
void add_learning_rates(TrainingBuild& build);
void add_gradient_norms(TrainingBuild& build);
void scale_and_clip(TrainingBuild& build);
void add_updates(TrainingBuild& build);
void add_averages(TrainingBuild& build);
void add_update_norms(TrainingBuild& build);

}  // namespace tandem
