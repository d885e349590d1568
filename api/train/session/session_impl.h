// The state of a Session between its steps, for the files of the session only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/model/model.h"
#include "api/train/session/session_weights.h"
#include "engine/train/divergence/check_integers.h"
#include "engine/train/evaluation/evaluation.h"
#include "engine/train/graph/loss_scale.h"
#include "engine/train/updates/learning_rate_factors.h"
#include "engine/train/updates/missed_steps.h"
#include "tandem/session.h"
#include "tandem/stop.h"

namespace tandem::api {

using Feeds = Tensors;

inline constexpr const char* session_handle =
    "Session";  // the name in errors about one that was moved from

FieldTypes types_of_feeds(const Feeds& feeds);
/// The error for an input that is fed with the type `got`; `or_else`: text about another type that
/// is allowed.
Diagnostic of_other_type(const std::string& input, const TensorType& expected,
                         const TensorType& got, const char* or_else = "");
/// Copies the feeds into the inputs of a program. Throws Error{usage} where one is missing or has
/// another type.
void feed(Program& program, const Feeds& feeds, const FieldTypes& types, std::uint64_t ticket);
/// Throws Error{runtime} where a stop was requested.
void refuse_stopped(const StopToken& stop);

class FedSamples;  // api/train/session/session_evaluate.cpp

/// An evaluation of that many samples with programs of its own, and what it reads.
struct FedEvaluation {
  FieldTypes types;
  std::shared_ptr<FedSamples> samples;
  std::unique_ptr<Evaluation> evaluation;
};

struct Session::Impl {
  RunConfig config;
  RunPolicy policy;
  Engine engine;
  PlacedModel model;
  RunParts parts;
  RunLength length;
  Schedules schedules;
  AverageRates averages;
  StateStore states;
  std::shared_ptr<Arenas> arenas = make_arenas();
  std::optional<FieldTypes> fields;  // types of the first feeds that a program was made for
  std::int64_t first_samples = 0;    // number of samples in them
  std::vector<bool> thawed;          // by rule of parameters.freeze, when `trainings` were made
  MissedSteps missed;
  MissedStepCounts missed_steps;  // counts for the parameters that `trainings` train
  std::map<std::int64_t, BoundProgram> trainings;  // by batch size
  std::map<std::int64_t, std::unique_ptr<Program>> predictors;
  std::map<std::int64_t, FedEvaluation> evaluations;  // by number of samples
  StopToken stop;
  std::optional<double> learning_rate;  // set by the user
  bool trains_ahead;                    // an optimizer has a lead (session_weights.h)
  std::uint64_t steps = 0, predictions = 0;
  LossScaleWatch scale_watch;
  ErrorWord errors;
  std::optional<bool> samples_are_alone;              // what `predicts_samples_alone` has found
  std::optional<std::vector<std::string>> id_inputs;  // inputs that choose rows of parameters
  std::optional<FieldChecks> checks;  // checks of what is fed, from the first step on
  /// Parameters that were set, or that start from other values than the file's, before a program
  /// holds them.
  std::map<std::string, HostTensor> written;

  /// `policy_text`: that of a policy that is no file, in place of the configuration's.
  explicit Impl(RunConfig c, std::optional<std::string> policy_text = {});

  /// The model in training form: defines the parameters before any program exists.
  const Graph& forward() { return model.forward(config.batch_size, true); }
  std::vector<bool> thawed_now() const;
  /// Throws Error{usage} for feeds that neither the model nor the loss takes. `others`: names that
  /// are known besides.
  void refuse_unknown(const Feeds& feeds, const std::vector<std::string>& others = {});
  /// Throws Error{runtime} where the session was asked to stop.
  void check_stop() const;
  /// Throws Error{usage} where the model's training_info says how it trains. `call`: what was
  /// asked.
  void refuse_own_training(const char* call);
  /// The program of a step with that many samples. Fields that the loss reads and the model does
  /// not keep the types of the first feeds.
  BoundProgram& training(std::int64_t batch, const FieldTypes& fed);
  /// The number of steps so far, without those that the loss scale has skipped.
  std::int64_t taken() const;
  /// Throws, before the first step, what the programs of later phases of freezing would throw.
  /// `first`: the program of this step, for that many samples.
  void check_later_phases(TrainingRequest request, const BoundProgram& first, std::int64_t batch);
  /// Records what is frozen from the next step on.
  void count_missed_steps(const FieldTypes& fed);
  /// Whether axis 0 of an input of the model is the batch axis.
  bool has_batch_axis(ValueId input);
  /// The number of samples that all fed inputs of the model agree on; empty where they do not.
  std::optional<std::int64_t> samples_of(const FieldTypes& fed);
  Program& predictor(std::int64_t batch);
  /// The number of samples that are fed. Throws Error{usage} where inputs of the model are fed with
  /// other types, or none is fed.
  std::int64_t samples_to_predict(const FieldTypes& fed);
  /// Whether the model in inference form computes each sample of a batch on its own.
  bool predicts_samples_alone();
  /// The outputs for feeds that make up one batch. `part`: its number among those of a call, which
  /// have random numbers of their own.
  Tensors predict_batch(const Feeds& feeds, const FieldTypes& types, std::int64_t samples,
                        std::int64_t part = 0);
  /// Throws Error{data} for labels and ids out of range in the feeds of the next step.
  void check_fed_values(const Feeds& feeds, const FieldTypes& fed, std::int64_t batch);
  /// Throws Error{data} for ids out of range in feeds of predict.
  void check_fed_ids(const Feeds& feeds, const FieldTypes& fed, std::int64_t samples);
  /// Throws where the last step has no finite loss, or where no loss scale helps.
  void refuse_divergence(const BoundProgram& training, double loss, std::uint64_t ticket,
                         const Feeds& feeds, const FieldTypes& fed);
  /// Moves `written` into the states that exist once a program was made; returns their names.
  std::set<std::string> write_states();
  /// The learning rate `base` in proportion to a learning rate that was set.
  double base_rate(double base) const;
  /// By parameter, as checkpoints record them, with the averages that are kept; empty where
  /// training_info defines the optimizer.
  std::map<std::string, std::string> optimizer_kinds();
  SessionStates own_states() { return {states, written}; }
  /// While it lives, parameters hold what is used.
  SessionWeights weights_in_use() { return {own_states(), trains_ahead ? &forward() : nullptr}; }
  /// The present value of a parameter or buffer, also where no program holds it yet.
  HostTensor read(const State& state) const;
};

}  // namespace tandem::api
