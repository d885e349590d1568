// The state of a training between its steps; only for the files of the trainer.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/graph/error.h"
#include "engine/training/checkpoints/checkpoint.h"
#include "engine/training/checkpoints/run_directory.h"
#include "engine/training/divergence/finite_watch.h"
#include "engine/training/divergence/not_finite_origin.h"
#include "engine/training/evaluation.h"
#include "engine/training/loss_scale.h"
#include "engine/training/ranks/gathered.h"
#include "engine/training/ranks/rank_times.h"
#include "engine/training/ranks/step_signals.h"
#include "engine/training/run_length.h"
#include "engine/training/step_runner.h"
#include "engine/training/trainer.h"

namespace tandem {

struct Training::Impl {
  RunConfig config;
  RunParts parts;
  DataSets data;
  std::shared_ptr<OpenEpochs> epochs;  // order of the training samples by epoch
  TrainingHooks hooks;
  StateStore states;
  std::shared_ptr<Arenas> arenas = make_arenas();
  RunLength length;
  std::unique_ptr<StepRunner> runner;
  std::unique_ptr<Evaluation> evaluation;
  std::vector<MemoryUse> memory;  // per device: of all programs of the run together
  std::unique_ptr<RunDirectory> directory;
  TrainingPosition position;
  std::vector<std::pair<std::string, double>> last_evaluation;
  std::vector<MetricTable> last_tables;  // from the same evaluation
  LossScaleWatch scale_watch;
  std::vector<NamedTensor> carried;  // states of the checkpoint that this precision does not have
  std::vector<std::string> notes;    // for the log, before there is a directory
  double last_loss = std::nan("");   // until a step was taken, or read from metrics.jsonl
  std::set<std::string> infinite;    // states that hold infinities before training
  std::vector<NotFiniteState> nan_at_start;  // states that hold NaN before training
  FiniteWatch watch;
  std::vector<std::pair<std::string, std::string>> histograms;  // result of histogram_parameters
  /// Whether the data is the cause of what is not finite; what was trained is as good as before.
  bool data_is_the_cause = false;
  std::uint64_t saved_step = 0;
  bool saved_is_behind = false;  // the checkpoint of that step lacks an evaluation of it
  bool interrupted = false;      // by hooks.stop_requested
  RankTimes rank_times;
  int told_slowest = -1;                     // the rank that was last reported as the slowest
  StepSignals signals;                       // sum over all ranks in the newest step that was taken
  std::function<StepSignals()> signals_now;  // reads this process's clock
  std::optional<std::uint64_t> evaluated_step;  // step of the last evaluation in metrics.jsonl
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now(),
                                        logged_at = started;
  std::uint64_t logged_samples = 0;
  double logged_wait = 0;          // StepRunner::waited_for_data at the last line
  std::uint64_t logged_step = 0;   // the last step whose line is, or will be, in the log
  std::uint64_t watched_step = 0;  // the last step that hooks.watch looks at
  std::uint64_t first_step = 0;    // steps done before this process
  /// Bytes that devices copied before the first step, to evaluate and to check states.
  std::uint64_t other_bytes = 0;

  /// If there are several ranks, only the first one writes, reports and checks states.
  int rank() const { return place_of(parts).rank; }
  /// The order in which the configuration reads the training samples.
  void open_epochs();
  /// Samples of a micro-batch of the configuration.
  std::int64_t batch() const;
  /// The model in training form, for such a micro-batch; and the model's own training algorithm.
  Graph forward() const;
  std::shared_ptr<const TrainingAlgorithm> algorithm() const;
  /// Bytes that all devices have copied so far; waits for them.
  std::uint64_t copied_bytes() const;

  // trainer_loop.cpp: step by step.
  TrainingResult train();
  /// Asks hooks.stop_requested, unless it has said so already. Several ranks: whether one of them
  /// was asked to stop before its newest step that was taken.
  bool is_interrupted();
  /// Whether this process was asked to stop, by now.
  bool is_asked_to_stop() const;
  /// Launches the next step. Saves what was trained before it throws what the loader could not
  /// read.
  void launch(MicroBatchWatch* watch);
  /// Waits for the oldest step that was launched: from here on the run is after that step.
  StepResult take();
  /// Logs the step that was taken; throws where the run cannot continue after it, and then does not
  /// save it.
  void judge(const StepResult& result);
  /// The step that was launched after the one that is being checked, if any: the states already
  /// include it.
  std::optional<StepResult> take_next();

  // ranks/trainer_ranks.cpp: what ranks of a run do alike.
  /// Throws where ranks do not have the same run directory: on a file system of their own.
  void prove_shared(const std::string& run_dir);
  /// Throws where the states of the ranks are not the same before the first step.
  void refuse_other_states();
  /// Whether some states are sharded: then each rank checks its parts.
  bool has_parts() const;
  /// Adds the names of states that hold infinities in parts on other ranks.
  void share_infinite();
  /// Records the hashes of sharded frozen states, before the first checkpoint is read or written.
  void hash_shared_frozen();
  /// Whether it is so on all ranks; all of them ask.
  bool on_all(const char* name, bool is_so);

  // trainer_checkpoints.cpp: where it starts, what it keeps.
  /// Makes the run directory, or continues in that of another process; returns the lock on it.
  std::shared_ptr<const void> start(const std::string& resume_from,
                                    const std::vector<std::pair<std::string, std::string>>& files);
  void resume(const std::string& run_dir);
  /// Throws where the checkpoint at `path` was made with another model or other data than this run,
  /// and the run does not accept that. Adds lines to `messages`; returns what checkpoints record
  /// from here on.
  FingerprintPtr compared(const TrainingPosition& saved, const std::string& path,
                          std::vector<std::string>& messages) const;
  /// Which parameters and statistics may hold infinities in a checkpoint.
  MayBeInfinite what_a_save_allows() const;
  /// Takes over the checkpoint at `path` of a run, which it does not change.
  void take_over(CheckpointContent& content, const std::string& path, const std::string& run_dir,
                 std::vector<std::string>& messages);
  /// Reports it where the disk has no room for the checkpoints in this folder.
  void warn_of_room(const std::string& folder);
  /// Whether the best value so far is one of this configuration's eval.best.
  bool best_is_of_this_metric() const;
  /// Adds an evaluation that the log of the run has and the checkpoint lacks, forgets a best value
  /// of another metric; `checkpoints/best` names the one that is left.
  void resume_best();
  /// Updates best and patience with the value of eval.best that was found after this step.
  void take_in(double value);
  /// Updates the learning rates with the values of an evaluation.
  void take_in(const std::vector<std::pair<std::string, double>>& values);
  void write_best();  // checkpoints/best
  /// Whether `eval.patience` evaluations, the last ones, were not better.
  bool patience_has_run_out() const;
  std::string not_improved() const;  // a sentence about that
  /// Does nothing where this step was saved with its evaluation. `keep_all`: whatever
  /// checkpoint.keep says.
  void save(bool finished, bool keep_all = false);
  CheckpointSources sources() const;
  std::map<std::string, std::string> vocabulary_hashes() const;

  // trainer_reports.cpp: its reports.
  void say(const std::string& text);
  /// Writes the error into the log of the run that it ends.
  void log_error(const Error& error);
  /// The part of a report that every line has; `values` and other members are added by the caller.
  TrainingProgress progress_now() const;
  bool is_at_end() const { return position.step >= static_cast<std::uint64_t>(length.steps); }
  /// Until the last step, or until max_time; negative: not known.
  double seconds_left() const;
  void report(const TrainingProgress& progress) const;
  void log_step(const StepResult& result);
  /// For several ranks: adds the slowest one to the values of a line, and reports it where the
  /// others wait for it.
  void add_slowest(std::vector<std::pair<std::string, double>>& values);
  /// False where patience has run out. Saves what was trained before it throws. Without a result
  /// where it is interrupted.
  bool evaluate();
  bool measure();
  TrainingResult finish();

  // logs/trainer_logs.cpp: log.also and log.histograms.
  /// Opens the formats of a run that continues from this place, with the graph in those that draw
  /// it.
  void open_logs();
  /// Parameters of log.histograms: name and path. Throws Error{usage} for selectors that match
  /// none.
  std::vector<std::pair<std::string, std::string>> histogram_parameters() const;
  void log_histograms();

  // trainer_divergence.cpp: what is not finite any more, and why.
  FiniteWatch::Place place() const { return {position.step, position.data}; }
  /// Throws where the loss of the step is not finite. Saves the step first where only the data is
  /// at fault.
  void refuse_bad_loss(const StepResult& result);
  /// Throws where a run that begins has states with NaN.
  void refuse_nan_at_start() const;
  void refuse_own_nan_at_start() const;
  /// Checks states after a step: a part of them where it is logged, all where its gradients were
  /// not finite and were not left out. Throws what refuse_bad_states does.
  void look_at_states(const StepResult& result, bool logged);
  /// Throws where states of this rank are not finite.
  void refuse_own_bad_states();
  /// Checks all states. Throws Error{diverged} naming those that are not finite.
  void refuse_bad_states();
  /// Throws where the last evaluation is not finite: names the states that are the cause, if any.
  void refuse_bad_metrics();
  /// Fields of a source that the steps read.
  std::vector<int> fed(const DataSource& source) const;
  /// Training data between two places that is not finite; at most the last epoch's worth of it.
  std::vector<Diagnostic> bad_data(const DataPosition& from, const DataPosition& to) const;
  // trainer_origin.cpp: in which operator they began.
  /// The run as it was at its newest checkpoint before a step, or at its start. Null where that is
  /// too many steps back.
  std::unique_ptr<Training> repeated(std::uint64_t before) const;
  /// The first step that leaves states which are not finite; the last one where none does.
  std::optional<std::uint64_t> first_bad_step() const;
  std::optional<NotFiniteOrigin> origin_in_step(std::uint64_t step) const;
  /// The origin in a step, or in the first one that leaves states which are not finite (then `step`
  /// is set): the run is repeated up to there. Nothing where that takes long, or is not possible.
  std::optional<NotFiniteOrigin> find_origin(std::optional<std::uint64_t>& step) const;
  /// The diagnostics for that origin, and advice (`fix`).
  std::vector<Diagnostic> origin_of(std::optional<std::uint64_t> step, std::string& fix) const;
  /// The advice for values that are not finite: `fix`, with what float16 adds.
  std::string with_float16_advice(const char* fix) const;
  /// For a run that has diverged: adds to the first diagnostic what --resume continues from.
  Error with_newest_checkpoint(const Error& error) const;
};

}  // namespace tandem
