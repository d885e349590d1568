// The programs of a training run: one per size and place of a micro-batch in its step, all over one
// State.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/loader.h"
#include "engine/graph/structures/out_of_line.h"
#include "engine/ranks/rendezvous.h"
#include "engine/runtime/program.h"
#include "engine/train/evaluation/field_words.h"
#include "engine/train/graph/training_graph.h"
#include "engine/train/programs/run_model.h"

namespace tandem {

struct Fingerprint;   // engine/train/checkpoints/fingerprint.h
class StagedForward;  // engine/train/staged/forward_graph.h

/// What a run needs besides its configuration and its data.
struct RunParts {
  COPIED_OUT_OF_LINE(RunParts);

  const OperatorSet* operators = nullptr;
  std::vector<Device*> devices;
  std::shared_ptr<RunModel> model;
  Evaluator evaluate;  // for constants in training graphs; may be empty
  /// Options for every program; slots are set by the trainer.
  ProgramOptions options;
  /// What checkpoints record and resume compares; null: nothing.
  std::shared_ptr<const Fingerprint> fingerprint;
  /// Whether changes that the fingerprint shows are accepted.
  bool accept_changes = false;
  std::shared_ptr<Rendezvous> ranks = one_rank();  // that train together
  Shardings shards;                                // how they shard parameters
  StagedForward* staged = nullptr;  // where `forward` is only what is known before the run
  FieldWords words;                 // names of classes for metrics of many numbers
};

/// This process's rank, and how many there are.
RankPlace place_of(const RunParts& parts);

/// A program with the indices of what is fed and read.
struct BoundProgram {
  std::unique_ptr<Program> program;
  std::vector<int> data_inputs;  // per loader field: input index, or -1
  /// Inputs that are fed with what other inputs, those of data, will get in the next micro-batch:
  /// pairs of that input and the other one.
  std::vector<std::pair<int, int>> next_inputs;
  int step_input = -1;
  int signals_input = -1, signals_output = -1;  // with several ranks: this one's, their sum
  std::vector<std::pair<int, LearningRate>> learning_rates;
  std::vector<std::pair<int, std::string>> denominators;  // input, term
  std::vector<std::pair<int, Average>> averages;
  int loss_output = -1;
  std::vector<std::pair<int, std::string>> term_outputs;
  int norm_output = -1;
  std::vector<std::pair<int, std::string>> norms;  // outputs of log.norms
  int scale_output = -1, skipped_output = -1;      // with a loss scale
  std::vector<std::string> notes;

  /// Index of a graph output by name, or -1.
  int output(const std::string& name) const;
};

/// What a program is built for: samples that this rank computes in one run of it, samples of the
/// whole step of all ranks.
struct MicroBatchShape {
  std::int64_t micro_batch = 0, step = 0;
  MicroBatchKind kind = MicroBatchKind::whole;
  std::int64_t all = 0;     // samples of the run over all ranks, which follow from step and kind
  std::int64_t length = 0;  // sequence length; 0: there are no buckets
  auto operator<=>(const MicroBatchShape&) const = default;
};

/// Indices of the data fields that a program is fed.
std::vector<int> fed_fields(const BoundProgram& bound);

/// The shape of the program that a micro-batch of the loader needs.
MicroBatchShape shape_of(const MicroBatch& micro_batch);

/// The micro-batches of a step of `count` samples of all ranks: counts, places in the step, whether
/// it ends there.
std::vector<MicroBatch> micro_batches_of_step(std::int64_t count, std::int64_t micro_batch_size,
                                              const RankPlace& place = {});

/// Every shape that a rank needs for one epoch of that many samples; the full steps' come first.
std::vector<MicroBatchShape> needed_shapes(std::int64_t samples, std::int64_t batch_size,
                                           std::int64_t micro_batch_size, bool drop_last,
                                           const RankPlace& place = {});

/// Throws Error{usage} where a micro-batch of these has fewer samples than there are ranks.
void refuse_small_shares(const std::vector<MicroBatchShape>& shapes, const RunConfig& config,
                         int ranks);

/// Every input of the graph that something reads must be a data field of exactly its type: nothing
/// else would be fed, or it would be fed past its end. Throws Error{usage}.
void check_fed_inputs(const TrainingGraph& training, const RunConfig& config,
                      const FieldTypes& fields);

/// Fills `next_inputs` for `ticket` from the slots of ticket `next`, a micro-batch of the same
/// program; where that is not known, with this micro-batch's own values, for which nothing has to
/// be fetched.
void feed_next(const BoundProgram& bound, std::uint64_t ticket, std::optional<std::uint64_t> next);

BoundProgram bind_program(const TrainingGraph& training, const RunParts& parts, StateStore& states,
                          std::shared_ptr<Arenas> arenas,
                          const std::vector<std::string>& data_fields);

}  // namespace tandem
