// What a training run consists of: the parts of its loop work on these objects.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "engine/train/checkpoints/checkpoint.h"
#include "engine/train/checkpoints/run_directory.h"
#include "engine/train/divergence/finite_watch.h"
#include "engine/train/evaluation/evaluation.h"
#include "engine/train/loop/run_length.h"
#include "engine/train/steps/step_runner.h"

namespace tandem {

struct Run {
  RunConfig config;
  RunParts parts;
  DataSets data;
  std::shared_ptr<OpenEpochs> epochs;  // the order of the training samples by epoch
  StateStore states;
  std::shared_ptr<Arenas> arenas = make_arenas();
  RunLength length;
  TrainingPosition position;
  std::unique_ptr<StepRunner> runner;
  std::unique_ptr<Evaluation> evaluation;   // null: there is no held-out data
  std::unique_ptr<RunDirectory> directory;  // null until the run has started
  std::uint64_t first_step = 0;             // steps done before this process
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  /// Bytes that devices copied for something else than steps: evaluations, checks of states.
  std::uint64_t other_bytes = 0;

  Run() = default;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Only the first rank writes, reports and checks states.
  int rank() const { return place_of(parts).rank; }
  Rendezvous& ranks() const { return *parts.ranks; }
  /// Whether ranks shard some states: then each rank checks its parts.
  bool shards_states() const { return !parts.shards.empty(); }
  /// Which forward graph the micro-batches of the configuration have.
  ForwardKey micro_batch() const;
  Graph forward() const { return parts.model->forward(micro_batch()); }
  bool is_at_end() const { return position.step >= static_cast<std::uint64_t>(length.steps); }
  FiniteWatch::Place place() const { return {position.step, position.data}; }
  /// Bytes that all devices have copied so far; waits for them.
  std::uint64_t copied_bytes() const;
};

}  // namespace tandem
