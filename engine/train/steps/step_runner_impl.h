// What runs optimizer steps: its programs, its loader, the steps that are under way. Only for the
// files of the runner.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/train/programs/run_programs.h"
#include "engine/train/steps/step_runner.h"
#include "engine/train/updates/missed_steps.h"

namespace tandem {

// What kernels report of one micro-batch.
struct MicroBatchErrors {
  ErrorWord word;
  const Program* program = nullptr;
  std::uint64_t step = 0;
};

// A step, and the last micro-batch of it that was launched.
struct LaunchedStep {
  StepResult result;
  BoundProgram* bound = nullptr;
  MicroBatch micro_batch;
  std::uint64_t ticket = 0;
  MicroBatchWatch* watch = nullptr;
  float signals = 0;         // the signals of this rank
  bool is_released = false;  // whether its slots are released to the loader
};

struct StepRunner::Impl {
  const RunConfig& config;
  RunParts parts;
  StepData data;
  RunLength length;
  Schedules schedules;
  AverageRates averages;
  RankPlace place;
  StateStore& states;
  std::shared_ptr<Arenas> arenas;

  std::map<std::int64_t, std::shared_ptr<const DataSource>> cut;  // by length of a bucket
  std::vector<std::string> field_names;
  std::vector<int> fields;                 // those that programs are fed
  std::array<MicroBatchErrors, 4> errors;  // by ticket; programs report to them until they are gone
  std::map<MicroBatchShape, BoundProgram> programs;
  std::vector<bool> thawed;  // per freeze rule, as the programs were built
  MissedSteps missed;
  MissedStepCounts missed_steps;  // for the parameters that train, as the programs were built
  const BoundProgram* main = nullptr;
  bool has_rates = false;  // learning rates are those of the configuration
  std::unique_ptr<Loader> loader;
  double waited_before = 0;  // seconds that loaders which are gone kept steps waiting
  std::uint64_t steps_done = 0, base_ticket = 0, next_ticket = 0;
  bool whole = true;        // states are those between steps
  bool has_buffers = true;  // running statistics, which every micro-batch of a step updates
  DataPosition position;    // after the last step that was launched
  std::array<LaunchedStep, 2> steps;
  int in_flight = 0;

  LaunchedStep& oldest() { return steps[(steps_done - in_flight + 1) % steps.size()]; }
  std::vector<bool> thawed_now() const;
  /// Makes the programs that follow `taken` steps that were not skipped; false where they are
  /// there.
  bool build_where_due(std::vector<bool> rules, std::int64_t taken);
  void build();
  std::int64_t taken_steps() const;
  /// The programs of steps from here to the end of the run, but for other phases of freezing.
  std::vector<StepProgram> needed() const;
  /// For the case that rules of parameters.freeze are in the state `rules`, and the parameters that
  /// train then have missed that many steps. Adds warnings about the graph in training, each once.
  TrainingGraph training_graph(const MicroBatchShape& shape, const std::vector<bool>& rules,
                               const MissedStepCounts& missed,
                               std::vector<std::string>& warnings) const;
  /// The data source for programs for a length; 0: there are no buckets.
  std::shared_ptr<const DataSource> source_of(std::int64_t length) const;
  void open_loader();
  void close_loader();
  /// The loader's next micro-batch, on all ranks or on none: where one of them cannot read its
  /// samples, all throw before any has launched the micro-batch.
  MicroBatch next_micro_batch();
  double denominator(const LossTerm& term, const MicroBatch& first) const;
  /// The forward graph of a program.
  Graph forward(const MicroBatchShape& shape, std::vector<std::string>& notes) const;
  RunParts parts_for(const StepProgram& program) const;
  void feed_scalars(const LaunchedStep& step, const MicroBatch& first);
  void launch(LaunchedStep& step, const MicroBatch& first);
  void read(LaunchedStep& step);
  void refuse_reports(std::uint64_t ticket);
  void release_early();
  const LossTerm& term(const std::string& name) const;
};

}  // namespace tandem
