// What a training has between its steps; for the files of the trainer alone.
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
  std::shared_ptr<OpenEpochs> epochs;  // of the training samples, in their order
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
  std::vector<MetricTable> last_tables;  // of the same evaluation
  LossScaleWatch scale_watch;
  std::vector<NamedTensor> carried;  // states of the checkpoint that this precision does not have
  std::vector<std::string> notes;    // for the log, before there is a directory
  double last_loss = std::nan("");   // until a step was taken, or metrics.jsonl told it
  std::set<std::string> infinite;    // states that hold infinities before training
  std::vector<NotFiniteState> nan_at_start;  // states that hold NaN before training
  FiniteWatch watch;
  std::vector<std::pair<std::string, std::string>> histograms;  // of histogram_parameters
  bool data_is_the_cause = false;  // of what is not finite; what was trained is as good as before
  std::uint64_t saved_step = 0;
  bool saved_is_behind = false;  // the checkpoint of that step lacks an evaluation of it
  bool interrupted = false;      // by hooks.stop_requested
  RankTimes rank_times;
  int told_slowest = -1;                        // the rank that was last said to be the slowest
  StepSignals signals;                          // of all ranks, in the newest step that was taken
  std::function<StepSignals()> signals_now;     // of this process's clock
  std::optional<std::uint64_t> evaluated_step;  // of the last evaluation in metrics.jsonl
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now(),
                                        logged_at = started;
  std::uint64_t logged_samples = 0;
  double logged_wait = 0;          // StepRunner::waited_for_data at the last line
  std::uint64_t logged_step = 0;   // the last step whose line is, or will be, in the log
  std::uint64_t watched_step = 0;  // the last step that hooks.watch looks at
  std::uint64_t first_step = 0;    // of this process: what it had before
  /// That devices copied before the first step, to evaluate and to look at states.
  std::uint64_t other_bytes = 0;

  /// Of several ranks the first one alone writes, tells and looks at states.
  int rank() const { return place_of(parts).rank; }
  /// The order in which the configuration reads the training samples.
  void open_epochs();
  /// Samples of a micro-batch of the configuration.
  std::int64_t batch() const;
  /// The model in training form, for such a micro-batch; and what it says itself of its training.
  Graph forward() const;
  std::shared_ptr<const TrainingAlgorithm> algorithm() const;
  /// Bytes that all devices have copied so far; waits for them.
  std::uint64_t copied_bytes() const;

  // trainer_loop.cpp: step by step.
  TrainingResult train();
  /// Asks hooks.stop_requested, unless it has said so already. Several ranks: whether one of them
  /// was asked to stop before its newest step that was taken.
  bool is_interrupted();
  /// Whether this process is, now.
  bool is_asked_to_stop() const;
  /// Launches the next step. Saves what was trained before it throws what the loader could not
  /// read.
  void launch(MicroBatchWatch* watch);
  /// Waits for the oldest step that was launched: from now on the run is behind it.
  StepResult take();
  /// Logs the step that was taken; throws where the run cannot go on after it, of which nothing is
  /// saved then.
  void judge(const StepResult& result);
  /// The step that was launched behind the one that is judged, if any: the states are behind it
  /// already.
  std::optional<StepResult> take_next();

  // ranks/trainer_ranks.cpp: what ranks of a run do alike.
  /// Throws where ranks do not have the same run directory: on a file system of their own.
  void prove_shared(const std::string& run_dir);
  /// Throws where the states of the ranks are not the same before the first step.
  void refuse_other_states();
  /// Whether ranks share out some states: then each looks at its parts.
  bool has_parts() const;
  /// Takes over the names of states of which other ranks have parts that hold infinities.
  void share_infinite();
  /// Records the hashes of frozen states that ranks share out, before the first checkpoint is read
  /// or written.
  void hash_shared_frozen();
  /// Whether it is so on all ranks; all of them ask.
  bool on_all(const char* name, bool is_so);

  // trainer_checkpoints.cpp: where it starts, what it keeps.
  /// Makes the run directory, or goes on in that of another process; returns the lock on it.
  std::shared_ptr<const void> start(const std::string& resume_from,
                                    const std::vector<std::pair<std::string, std::string>>& files);
  void resume(const std::string& run_dir);
  /// Throws where the checkpoint at `path` rests on another model or other data than this run, and
  /// the run does not accept that. Adds lines to `messages`; returns what checkpoints record from
  /// now on.
  FingerprintPtr compared(const TrainingPosition& saved, const std::string& path,
                          std::vector<std::string>& messages) const;
  /// Which parameters and statistics may hold infinities in a checkpoint.
  MayBeInfinite what_a_save_allows() const;
  /// Takes over the checkpoint at `path` of a run, in which it changes nothing.
  void take_over(CheckpointContent& content, const std::string& path, const std::string& run_dir,
                 std::vector<std::string>& messages);
  /// Says so where the disk has no room for the checkpoints in this folder.
  void warn_of_room(const std::string& folder);
  /// Whether the best so far is one of this configuration's eval.best, as far as is known.
  bool best_is_of_this_metric() const;
  /// Takes in an evaluation that the log of the run has and the checkpoint does not know, forgets a
  /// best of another metric; `checkpoints/best` names the one that is left.
  void resume_best();
  /// What the value of eval.best means that was found after this step: for best and patience.
  void take_in(double value);
  /// What an evaluation means for the learning rates.
  void take_in(const std::vector<std::pair<std::string, double>>& values);
  void write_best();  // checkpoints/best
  /// Whether `eval.patience` evaluations, the last ones, were not better.
  bool patience_has_run_out() const;
  std::string not_improved() const;  // says so
  /// Nothing where this step was saved with its evaluation. `keep_all`: whatever checkpoint.keep
  /// says.
  void save(bool finished, bool keep_all = false);
  CheckpointSources sources() const;
  std::map<std::string, std::string> vocabulary_hashes() const;

  // trainer_reports.cpp: what it tells.
  void say(const std::string& text);
  /// Into the log of a run that it ends.
  void log_error(const Error& error);
  /// What is told of any line; `values` and what else it has come on top.
  TrainingProgress progress_now() const;
  bool is_at_end() const { return position.step >= static_cast<std::uint64_t>(length.steps); }
  /// Until the last step, or until max_time; negative: not known.
  double seconds_left() const;
  void report(const TrainingProgress& progress) const;
  void log_step(const StepResult& result);
  /// Of several ranks: adds which one takes longest to the values of a line, and says so where the
  /// others wait for it.
  void add_slowest(std::vector<std::pair<std::string, double>>& values);
  /// False where patience has run out. Saves what was trained before it throws. Without a result
  /// where it is interrupted.
  bool evaluate();
  bool measure();
  TrainingResult finish();

  // logs/trainer_logs.cpp: log.also and log.histograms.
  /// Opens the formats of a run that goes on from this place, with the graph in those that draw it.
  void open_logs();
  /// Parameters of log.histograms: name and path. Throws Error{usage} for selectors that match
  /// none.
  std::vector<std::pair<std::string, std::string>> histogram_parameters() const;
  void log_histograms();

  // trainer_divergence.cpp: what is not finite any more, and why.
  FiniteWatch::Place place() const { return {position.step, position.data}; }
  /// Throws where the loss of the step is not finite. Saves it first where that is the data's fault
  /// alone.
  void refuse_bad_loss(const StepResult& result);
  /// Throws where a run that begins has states with NaN.
  void refuse_nan_at_start() const;
  void refuse_own_nan_at_start() const;
  /// Looks at states after a step: at a part of them where it is logged, at all where its gradients
  /// were not finite and were not left out. Throws what refuse_bad_states does.
  void look_at_states(const StepResult& result, bool logged);
  /// Throws what of this rank's states is not finite.
  void refuse_own_bad_states();
  /// Looks at all states. Throws Error{diverged} naming those that are not finite.
  void refuse_bad_states();
  /// Throws where the last evaluation is not finite: names the states that are the cause, if any.
  void refuse_bad_metrics();
  /// Fields of a source that the steps read.
  std::vector<int> fed(const DataSource& source) const;
  /// What training data between two places is not finite; of the last epoch's worth of it.
  std::vector<Diagnostic> bad_data(const DataPosition& from, const DataPosition& to) const;
  // trainer_origin.cpp: in which operator they began.
  /// The run as it was at its newest checkpoint before a step, or at its start. Null where that is
  /// too far behind.
  std::unique_ptr<Training> repeated(std::uint64_t before) const;
  /// The first step that leaves states which are not finite; the last one where none does.
  std::optional<std::uint64_t> first_bad_step() const;
  std::optional<NotFiniteOrigin> origin_in_step(std::uint64_t step) const;
  /// Of a step, or of the first one that leaves states which are not finite (then `step` is set):
  /// the run is made again up to there. Nothing where that takes long, or is not possible.
  std::optional<NotFiniteOrigin> find_origin(std::optional<std::uint64_t>& step) const;
  /// The same for people, and what helps (`fix`).
  std::vector<Diagnostic> origin_of(std::optional<std::uint64_t> step, std::string& fix) const;
  /// Of values that are not finite: what float16 adds to `fix`.
  std::string with_float16_advice(const char* fix) const;
  /// Of a run that has diverged: says with the first thing what --resume goes on from.
  Error with_newest_checkpoint(const Error& error) const;
};

}  // namespace tandem
