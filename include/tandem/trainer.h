// A whole run: training, evaluations, checkpoints and a run directory.
#pragma once

#include <map>

#include "tandem/model.h"
#include "tandem/policy.h"

namespace tandem::api::inline v1 {

class DataSource;    // tandem/data_source.h
struct TrainConfig;  // tandem/train_config.h

/// What a logged step or an evaluation reports.
struct Progress {
  std::uint64_t step = 0, steps = 0;  ///< steps = 0: unknown
  double epoch = 0, epochs = 0;
  bool evaluation = false;
  std::vector<std::pair<std::string, double>> values;  ///< loss, terms, accuracy, lr
  std::vector<std::pair<std::string, double>> norms;   ///< a logged step's, by log.norms
  double samples_per_second = 0;
  double seconds = 0, seconds_left = -1;  ///< at the pace of this process so far; negative: not known
  double data_wait = 0;                   ///< part of the time since the line before in which steps waited for data
};

struct TrainOptions {
  std::vector<std::string> overrides;  ///< keys over the configuration's: "optimizer.lr=0.01"
  std::vector<std::string> place;      ///< rules over the policy's: '{ at = "wide.**", on = "cpu" }'
  std::vector<std::string> devices;    ///< "gpu=emulated:0,memory=2GiB"
  std::string run_dir;                 ///< empty: runs/NAME-0001, numbered up
  bool resume = false;  ///< go on with what the run was started with; overrides, rules and devices above are added
  /// Resume although model or data have changed since the checkpoint was written, or placement, devices or length
  /// (other than by `overrides`) differ from the start; else that is Error{usage}. The log reports what was accepted.
  bool accept_changes = false;
  bool dry_run = false;        ///< do all up to the first step; the run directory is only checked, not made
  bool log_operators = false;  ///< lines of the log also have times of operators, ids and rows of lookups and updates
  bool verbose = false;        ///< `summary` also lists copies of values from one order in memory to another
  /// A Chrome trace of steps `trace_first` to `trace_last` of rank 0 (0: the third to the fifth of this process), which
  /// are waited for one by one, with what the cost model expected and the bytes in use on each device; "": none.
  std::string trace_path;
  std::uint64_t trace_first = 0, trace_last = 0;
  std::optional<Policy> policy;  ///< in place of the configuration's; `place` comes after it
  /// The samples, in place of files: the configuration then has `data.kind = "program"`, or no [data]. `eval`: the
  /// held-out ones; null: none, or `data.eval.fraction` of `train`.
  std::shared_ptr<const DataSource> train, eval;
  // On rank 0, in the thread that runs the training. What a callback throws ends the run.
  std::function<void(const Progress&)> on_step, on_evaluation;  ///< each log.every; each eval.every, and the last one
  std::function<void(const Progress&)> on_progress;             ///< both of these
  /// Each checkpoint.every, best and last ones too, once the checkpoint's folder is complete.
  std::function<void(const std::string& path, std::uint64_t step)> on_checkpoint;
  std::function<void(const std::string&)> on_message;  ///< notes for people
  std::function<void(const std::string&)> on_run_dir;  ///< once it exists, with its number if it has
  /// On request the constructor throws Error{runtime} "interrupted" and leaves nothing of a table in preparation; `run`
  /// saves after the current step and returns.
  StopToken stop;
};

/// A metric that is more than one number: one for each class, value of a data field, or pair of label and prediction.
struct MetricTable {
  std::string metric;              ///< its name
  std::vector<std::string> names;  ///< names of the classes or values
  std::vector<double> numbers;     ///< one a name; NaN: there is none
  bool is_matrix = false;          ///< one for each pair of names, row by row; rows are labels
};
/// Lines for people, with at most 20 names.
std::string to_text(const MetricTable& table);

struct TrainResult {
  int rank = 0;  ///< this process's, among those that train together; only 0 reports
  std::string run_dir;
  std::uint64_t steps = 0;
  double loss = 0;                           ///< in the last step; NaN: no step was left
  std::map<std::string, double> evaluation;  ///< last values of the metrics
  std::vector<MetricTable> tables;           ///< those that are more than one number
  std::string best_metric;                   ///< that of the best checkpoint; "": there is none
  double best_value = 0;                     ///< the metric's
  std::uint64_t best_step = 0;
  bool interrupted = false;           ///< saved and ended on a `TrainOptions::stop`
  std::vector<std::string> warnings;  ///< about the data; `on_message` got them, too
};

/// A run described by a configuration, of one process or of as many as a launcher has started for it
/// (docs/processes.md): only rank 0 reports anything; on the others `summary` is empty. Any number of Trainers and
/// Sessions live side by side and one after the other; threads may use different ones at a time, but one of them one at
/// a time. A call leaves the thread that makes it as it was: rounding, denormals, number of OpenMP threads. A Trainer
/// that was moved from throws Error{usage} until another one is assigned to it.
class Trainer {
 public:
  /// Reads and checks the configuration, the model and the data. Throws Error with all that is wrong. For an ONNX file
  /// in place of a train.toml, the rest is guessed from the override "data=PATH", else Error{usage}.
  Trainer(const std::string& config_path, TrainOptions options);
  /// Takes a configuration in memory; run directories are made next to `config.file`.
  Trainer(const TrainConfig& config, TrainOptions options);
  /// Trains this model, read as its options say: `config.model` has no file, and sets nothing else than them. Throws
  /// Error{usage} also for ModelOptions::without.
  Trainer(const Model& model, const TrainConfig& config, TrainOptions options);
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  TrainResult run();            ///< trains. May be called once; throws Error{usage} after that.
  std::string summary() const;  ///< one paragraph: model, parameters, placement with crossings, memory plan

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::api::inline v1
