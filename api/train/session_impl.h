// What a Session holds between its steps; for the files of the session alone.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/model/model.h"
#include "engine/training/averages/weights_in_use.h"
#include "engine/training/divergence/check_integers.h"
#include "engine/training/loss_scale.h"
#include "engine/training/optimizers/missed_steps.h"
#include "engine/training/schedule.h"
#include "tandem/tandem.h"

namespace tandem::api {

using Feeds = std::map<std::string, Array>;

inline constexpr const char* session_handle =
    "Session";  // in what is said of one that was moved from

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
  std::optional<FieldTypes> fields;  // of the first feeds that a program was made for
  std::int64_t first_samples = 0;    // that they had
  std::vector<bool> thawed;          // by rule of parameters.freeze, as `trainings` were made
  MissedSteps missed;
  MissedStepCounts missed_steps;                   // of parameters that `trainings` train
  std::map<std::int64_t, BoundProgram> trainings;  // by batch size
  std::map<std::int64_t, std::unique_ptr<Program>> predictors;
  std::optional<double> learning_rate;  // that was set
  std::uint64_t steps = 0, predictions = 0;
  LossScaleWatch scale_watch;
  ErrorWord errors;
  std::optional<FieldChecks> checks;  // of what is fed, since the first step
  /// Parameters that were set, or start elsewhere than in the file, before a program holds them.
  std::map<std::string, HostTensor> written;

  explicit Impl(RunConfig c);

  /// The model in training form: what the parameters are, before any program exists.
  const Graph& forward() { return model.forward(config.batch_size, true); }
  std::vector<bool> thawed_now() const;
  /// Throws Error{usage} for what neither the model nor the loss takes.
  void refuse_unknown(const Feeds& feeds);
  /// The program of a step of so many samples. Fields that the loss reads and the model does not
  /// have the types of the first feeds.
  BoundProgram& training(std::int64_t batch, const FieldTypes& fed);
  /// Steps so far that the loss scale has not left out.
  std::int64_t taken() const;
  /// Throws before the first step what the programs of later phases of freezing would throw.
  /// `first`: that of this step, for so many samples.
  void check_later_phases(TrainingRequest request, const BoundProgram& first, std::int64_t batch);
  /// Takes note of what is frozen from the next step on.
  void count_missed_steps(const FieldTypes& fed);
  /// Whether axis 0 of an input of the model is that of the samples.
  bool has_batch_axis(ValueId input);
  /// The samples in which all fed inputs of the model agree; nothing where they do not.
  std::optional<std::int64_t> samples_of(const FieldTypes& fed);
  Program& predictor(std::int64_t batch);
  /// For so many samples as are fed. Throws Error{usage} where inputs of the model are fed with
  /// other types, before a program is made for them, or none is fed.
  Program& predictor_for(const FieldTypes& fed);
  /// Throws Error{data} for labels and ids out of range that are fed for the next step.
  void check_fed_values(const Feeds& feeds, const FieldTypes& fed, std::int64_t batch);
  /// Throws where the step that was taken has no finite loss, or no loss scale helps.
  void refuse_divergence(const BoundProgram& training, double loss, std::uint64_t ticket);
  /// Hands `written` to the states that exist since a program was made; their names.
  std::set<std::string> write_states();
  /// The base of a learning rate as it is now.
  double base_rate(double base) const;
  /// By parameter, as checkpoints record them, and which averages are kept; none where
  /// training_info has the optimizer.
  std::map<std::string, std::string> optimizer_kinds();
  /// A parameter or buffer as it is now, also where no program holds it yet.
  HostTensor read(const State& state) const;
};

}  // namespace tandem::api
