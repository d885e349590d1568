// Checkpoints: a directory with everything that exact resume needs, written under another name and
// then renamed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/data/loader.h"
#include "engine/formats/named_tensor.h"
#include "engine/formats/safetensors.h"
#include "engine/ranks/rendezvous.h"
#include "engine/runtime/program.h"
#include "engine/train/checkpoints/fingerprint.h"
#include "engine/train/updates/learning_rate_factors.h"

namespace tandem {

/// From a step on: batches of this size, with that many samples an epoch.
struct BatchStretch {
  std::uint64_t from_step = 0;
  std::int64_t batch_size = 0, samples = 0;
  bool drop_last = false;
  bool is_as(const BatchStretch& other) const {
    return batch_size == other.batch_size && samples == other.samples &&
           drop_last == other.drop_last;
  }
};

/// state.json: what is not a tensor.
struct TrainingPosition {
  std::uint64_t step = 0;     // optimizer steps done
  DataPosition data;          // place of the next sample
  std::uint64_t samples = 0;  // seen since the first step
  std::uint64_t seed = 0;
  double held_out = 0;  // data.eval.fraction
  std::int64_t batch_size = 0;
  /// How the run came to its place in the data, which follows from them; at least one.
  std::vector<BatchStretch> batches;
  std::optional<double> best;  // value of eval.best so far
  std::uint64_t best_step = 0;
  std::string best_metric;                           // eval.best when it was found
  bool larger_is_better = false;                     // whether best_metric is better when larger
  std::map<std::string, std::string> best_measures;  // keys that decided what best_metric meant
  std::int64_t evaluations_without_better = 0;
  std::uint64_t evaluated = 0;        // step of the last evaluation that these know
  std::int64_t skipped_in_a_row = 0;  // the last steps, by the loss scale
  bool finished = false;
  std::map<std::string, std::string> vocabularies;   // sha256 by file name, of the training data's
  std::map<std::string, std::string> optimizers;     // kinds by parameter
  std::map<std::string, std::string> functions;      // id_functions
  std::map<std::string, bool> thawed;                // FrozenSoFar
  std::map<std::string, std::int64_t> missed_steps;  // FrozenSoFar
  PlateauStates plateaus;
  std::map<std::string, std::string> frozen;  // sha256 by state, of those that others hold
  FingerprintPtr fingerprint;                 // a file of its own; null: the engine by itself
};

struct CheckpointContent {
  TrainingPosition position;
  std::vector<NamedTensor> model;              // the file's own initializer names and shapes
  std::vector<NamedTensor> optimizer;          // "NAME/exp_avg"
  std::map<std::string, std::string> aliases;  // tied names -> stored name, in __metadata__
};

/// What a checkpoint is written from; states are read while it is.
struct CheckpointSources {
  TrainingPosition position;
  std::vector<TensorSource> model, optimizer;
  std::map<std::string, std::string> aliases;
  /// By name, what this rank keeps of each sharded state. Such tensors have the type of the whole
  /// state and nothing to read; all ranks write them together (rank_checkpoint.h).
  std::map<std::string, StateShard> shards;
};
/// Views the content, which has to outlive the result.
CheckpointSources sources_of(const CheckpointContent& content);
/// All states that checkpoints hold but sums of accumulating steps; reads them in ranges of rows.
CheckpointSources sources_of(const StateStore& states);

struct CheckpointOptions {
  /// Larger tensors go into files of about this size, written and read by several threads.
  std::uint64_t shard_bytes = std::uint64_t{1} << 30;
};

/// "step-00001000"
std::string checkpoint_name(std::uint64_t step);
/// The step in such a name; nothing for any other name.
std::optional<std::uint64_t> checkpoint_step(const std::string& name);
/// No run gets so far; sums with it stay within 64 bits.
constexpr std::uint64_t most_checkpoint_step = 1'000'000'000'000'000;

/// Writes `folder`/step-N as step-N.new, syncs, renames. An existing one of that step is replaced
/// at once, or kept where the file system cannot do that.
void write_checkpoint(const std::string& folder, const CheckpointSources& sources,
                      const CheckpointOptions& options = {});
void write_checkpoint(const std::string& folder, const CheckpointContent& content,
                      const CheckpointOptions& options = {});

/// Metadata of a file of weights: "format", and "alias:OTHER" = NAME for tied weights.
std::map<std::string, std::string> weights_metadata(
    const std::map<std::string, std::string>& aliases);

/// Whether a parameter or running statistic of this name may hold infinities, as masks of a model
/// do. An unset function allows them everywhere.
using MayBeInfinite = std::function<bool(const std::string& name)>;

/// For a checkpoint that several processes check together: each checks one of `of` shares of its
/// files and numbers.
struct ReadShare {
  int number = 0, of = 1;
};

/// Checks sizes and hashes against the manifest, every value that is read against its range and
/// against the other files, then maps the tensors, none of which holds numbers that no run has
/// written: nan, infinities, squares below 0. Throws Error{data} naming the file or the tensor,
/// Error{runtime} where it must not be read, Error{usage} where it is of another format.
CheckpointContent read_checkpoint(const std::string& path,
                                  const MayBeInfinite& may_be_infinite = {},
                                  const ReadShare& share = {});

/// The newest whole checkpoint; each broken one found before it adds a line to `messages`. Throws
/// Error{runtime} at one that must not be read, Error{usage} at one of another format. Several
/// `ranks` call it together: each checks a share of the files, and all get the same result.
std::optional<CheckpointContent> newest_checkpoint(const std::string& folder,
                                                   std::vector<std::string>& messages,
                                                   std::string* path = nullptr,
                                                   const MayBeInfinite& may_be_infinite = {},
                                                   Rendezvous& ranks = *one_rank());

/// Names of checkpoints in a folder, by step; leftovers of interrupted writes and folders with
/// other names are not listed.
std::vector<std::string> list_checkpoints(const std::string& folder);

/// Renames step-N to broken-step-N for all N > `step`: after resuming from `step`, what could not
/// be read must neither take the name of a new checkpoint nor count as one of the newest.
void set_broken_checkpoints_aside(const std::string& folder, std::uint64_t step);

/// Removes what killed writes have left: it is never read, and takes room.
void remove_unfinished_checkpoints(const std::string& folder);

/// Keeps the newest `keep` (0 = all) and the one of step `best`; removes what is unfinished.
void prune_checkpoints(const std::string& folder, std::int64_t keep, std::uint64_t best);

/// Tensors of a StateStore, split as the files are; sums of accumulating steps are left out.
void collect_states(const StateStore& states, CheckpointContent& content);
/// Writes loaded tensors back, for sharded states only this rank's rows. Large ones are written by
/// several threads and without keeping the files' pages in memory. Left out are the states of the
/// loss scale (see restore_loss_scale), states that others hold (State::held_by), and moments of
/// parameters that the run has not trained yet. Returns the names of the states that it wrote.
/// Throws Error{usage} for any other state that the checkpoint lacks or has in another shape.
std::set<std::string> restore_states(StateStore& states, const CheckpointContent& content);

/// Error{usage} where the checkpoint holds optimizer states that this run does not have.
void refuse_unknown_states(const StateStore& states, const CheckpointContent& content);

}  // namespace tandem
