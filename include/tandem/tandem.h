// The public C++ library: open a model, see what is in it, train it, export it. Standard types
// only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tandem/error.h"
#include "tandem/model.h"
#include "tandem/plan.h"
#include "tandem/policy.h"
#include "tandem/report.h"
#include "tandem/stop.h"

namespace tandem::api {

/// Version of the library, "0.1.0".
std::string version();

// ---------------------------------------------------------------- training

/// What a logged step or an evaluation reports.
struct Progress {
  std::uint64_t step = 0, steps = 0;  // steps = 0: unknown
  double epoch = 0, epochs = 0;
  bool evaluation = false;
  std::vector<std::pair<std::string, double>> values;  // loss, terms, accuracy, lr
  std::vector<std::pair<std::string, double>> norms;   // a logged step's, by log.norms
  double samples_per_second = 0;
  double seconds = 0;
  double seconds_left = -1;  // at the pace of this process so far; negative: not known
  double data_wait = 0;  // part of the time since the line before in which steps waited for data
};

struct TrainOptions {
  std::vector<std::string> overrides;  // "optimizer.lr=0.01"
  std::vector<std::string> place;      // rules over the policy's: '{ at = "wide.**", on = "cpu" }'
  std::vector<std::string> devices;    // "gpu=emulated:0,memory=2GiB"
  std::string run_dir;                 // empty: runs/NAME-0001, numbered up
  /// Continue with the overrides, rules and devices that the run was started with; those above are
  /// added.
  bool resume = false;
  /// Resume although the model or the data have changed since the checkpoint was written, or
  /// placement, devices or length (other than by `overrides`) differ from the start; without this
  /// flag that is Error{usage}. The log reports what was accepted; later checkpoints record the
  /// accepted changes of model and data.
  bool accept_changes = false;
  /// Do everything up to the first step. A run directory is not made, only checked: whether it can
  /// be made, or the run in it resumed.
  bool dry_run = false;
  /// With each line of the log also report the time of the step's operators, and how many ids and
  /// rows lookups in tables and their updates had.
  bool log_operators = false;
  /// `summary` also lists what only readers of a plan need: copies of values from one order in
  /// memory to another.
  bool verbose = false;
  /// A Chrome trace of some steps of rank 0; "": none. It covers steps `trace_first` to
  /// `trace_last`; 0: the third to the fifth of this process. They are waited for one by one. Next
  /// to what ran it has what the cost model expected, and the bytes in use on each device.
  std::string trace_path;
  std::uint64_t trace_first = 0, trace_last = 0;
  std::function<void(const Progress&)> on_progress;
  std::function<void(const std::string&)> on_message;  // notes for people
  /// Called on rank 0 once the run directory exists, whose name may have got a number.
  std::function<void(const std::string&)> on_run_dir;
  /// On request the constructor throws Error{runtime} "interrupted", leaving nothing of a table in
  /// preparation; `run` of this Trainer saves after the current step and returns.
  StopToken stop;
};

/// A metric that is more than one number: one for each class, value of a data field, or pair of
/// label and prediction.
struct MetricTable {
  std::string metric;              // its name
  std::vector<std::string> names;  // names of the classes or values
  std::vector<double> numbers;     // one a name; NaN: there is none
  bool is_matrix = false;          // one for each pair of names, row by row; rows are labels
};
/// Lines for people, with at most 20 names.
std::string to_text(const MetricTable& table);

struct TrainResult {
  int rank = 0;  // this process's, among those that train together; only 0 reports
  std::string run_dir;
  std::uint64_t steps = 0;
  double loss = 0;                           // in the last step; NaN: no step was left
  std::map<std::string, double> evaluation;  // last values of the metrics
  std::vector<MetricTable> tables;           // those that are more than one number
  /// The best checkpoint: its metric (eval.best), value and step. "": there is none.
  std::string best_metric;
  double best_value = 0;
  std::uint64_t best_step = 0;
  bool interrupted = false;           // saved and ended on a `TrainOptions::stop`
  std::vector<std::string> warnings;  // about the data; `on_message` got them, too
};

/// A run described by a train.toml, of one process or of as many as a launcher has started for it
/// (docs/processes.md): only rank 0 reports anything; on the others `summary` is empty. Any number
/// of Trainers and Sessions live side by side and one after the other; threads may use different
/// ones at a time, but one of them one at a time. A call leaves the thread that makes it as it was:
/// rounding, denormals, number of OpenMP threads. A Trainer that was moved from throws Error{usage}
/// until another one is assigned to it.
class Trainer {
 public:
  /// Reads and checks the configuration, the model and the data. Throws Error with all that is
  /// wrong.
  Trainer(const std::string& config_path, TrainOptions options);
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  /// Trains. May be called once; throws Error{usage} after that.
  TrainResult run();
  /// One paragraph: model, parameters, placement with crossings, memory plan.
  std::string summary() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---------------------------------------------------------------- without files: the library's
// core

/// A row-major array in host memory; float32, int64, ... by name.
struct Array {
  std::string dtype = "float32";
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  /// Throw Error{usage} where the values do not fill the shape, or the shape is not valid.
  static Array of(std::vector<std::int64_t> shape, const std::vector<float>& values);
  static Array of(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values);
  /// All elements, converted. Throws Error{usage} where type, shape and bytes do not fit.
  std::vector<float> floats() const;
};

/// A model in training, fed by the caller: `step` runs forward, backward and update. The rules for
/// threads and for moved-from objects are those of a Trainer.
class Session {
 public:
  /// `settings` are keys of train.toml: "optimizer.kind=adamw", "loss.terms=[{...}]", "seed=1".
  /// Those of the model, its parameters, loss, optimizer, precision, policy and device are
  /// honoured, with durations in steps; `steps` is the length of a cosine or linear schedule.
  /// Throws Error{usage} with everything that is wrong, and by name for each key that a Session
  /// does not honour: data, eval, checkpoint, log, micro_batch, epochs, max_time, name, run_dir.
  Session(const std::string& model_path, std::int64_t batch_size,
          const std::vector<std::string>& settings);
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  /// One array per fed input of the model and the loss, by name, batch on axis 0: batch_size
  /// samples or fewer, such as the last ones of an epoch, whose loss is a mean over those that are
  /// there. A program is kept for each batch size. Returns the loss. Throws Error{usage} for other
  /// feeds; no step was taken then. Throws Error{data} for ids and labels out of range, and
  /// Error{diverged} naming the step for a loss that is not finite or a loss scale that does not
  /// help: that step counts, and its update was made, unless the loss scale left it out;
  /// `parameters` shows the result, and the session continues from there. A step that the loss
  /// scale leaves out is no error.
  double step(const std::map<std::string, Array>& feeds);
  /// Outputs of the model in inference form, for any batch; inputs that only the loss takes are
  /// ignored.
  /// A program is kept for each batch size. Throws Error{usage|data} as `step`.
  std::map<std::string, Array> predict(const std::map<std::string, Array>& feeds);
  /// Parameters by the file's initializer names, with their current values; before the first step
  /// those of the file, or as [parameters] init and load say.
  std::map<std::string, Array> parameters() const;
  /// Throws Error{usage} for an unknown name, another shape or another type.
  void set_parameter(const std::string& name, const Array& value);
  /// From the next step on `lr` replaces optimizer.lr: groups keep their ratio to it, and schedules
  /// multiply it. Throws Error{usage} where it is negative or no number, or where the model's own
  /// training_info says how it trains.
  void set_learning_rate(double lr);
  /// Saves all that the next steps depend on as one .safetensors file, which appears once it is
  /// whole: parameters, running statistics, states of optimizers and averages, loss scale, the
  /// number of steps (with it random numbers, schedules and what is frozen) and the learning rate
  /// that was set.
  void save_state(const std::string& path) const;
  /// Continues from a saved state, bit by bit like the session that saved it. Throws
  /// Error{usage|data} where the file is not one, or one of another model, optimizer or seed;
  /// nothing has changed then.
  void restore_state(const std::string& path);
  /// Saves the model as .onnx, .safetensors or .npz, which appears once it is whole. Throws
  /// Error{usage|runtime} where it cannot be written.
  void save(const std::string& path) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---------------------------------------------------------------- tools

/// How tensors are renamed in .safetensors and .npz: the prefix `strip` is removed where a name has
/// it, the prefix `add` is put in front.
struct ExportNames {
  std::string strip, add;
};

/// What becomes of adapters (parameters.lora).
struct ExportAdapters {
  /// "merged": they go into the weights that they belong to; "separate": they stay tensors of their
  /// own, in an .onnx with nodes of their own next to the products.
  std::string lora = "merged";
  /// "peft": only adapters, as PEFT reads them: a folder with adapter_model.safetensors and
  /// adapter_config.json, or a .safetensors file with the latter next to it. "": decided by the
  /// name's ending.
  std::string format;
};

/// Writes the weights of a run directory or checkpoint: .onnx (the user's own graph in inference
/// form), .safetensors or .npz. `checkpoint` and `weights` as in TrainedOptions. Returns which
/// checkpoint was taken and what was written. Error{usage} where an .onnx would be made of another
/// model than was trained, unless `accept_changes`; for `names` given for an .onnx, or that make
/// two names equal.
std::string export_run(const std::string& run_or_checkpoint, const std::string& to,
                       const std::string& checkpoint = "", bool accept_changes = false,
                       const std::string& weights = "", const ExportNames& names = {},
                       const ExportAdapters& adapters = {});

/// Which model is used, and how. `run`: a run directory, one of its checkpoints, or an ONNX file
/// that `export_run` has written, with `config`. Without that, or of any other ONNX file, loss and
/// fields are guessed from it and `data`, which is then a file or a folder, as `init` does.
struct TrainedOptions {
  /// "best", "latest" or a step; "": the best one where the run has chosen one, else the latest.
  std::string checkpoint;
  /// "trained", "ema" or "swa"; "": those that the run evaluates (eval.weights).
  std::string weights;
  /// Use a model that has changed since the checkpoint was written; without this flag that is
  /// Error{usage}. The report's warnings say what was accepted.
  bool accept_changes = false;
  std::string config;  // the train.toml of an exported model
  /// A word that the vocabularies of the training data lack is Error{data} with its row, instead of
  /// the row 0 of its table and a warning where there are many. Bad rows are then never left out.
  bool strict_words = false;
  /// Files in the format of the configuration's [data]: "rows.tsv", "-" (standard input, tables
  /// only), "images=t10k.gz" where files have names.
  std::vector<std::string> data;
  std::vector<std::string> overrides;       // keys of train.toml
  std::vector<std::string> place, devices;  // on top of the training's, as in TrainOptions
  std::function<void(const std::string&)> on_message;  // notes for people
  /// After each micro-batch. `part`: fraction of the input, 0 to 1; negative where its length is
  /// not known. While `evaluate_run` reads text tables, before its first micro-batch, `rows` is 0
  /// and `part` the fraction that was read; calls then come from several threads, one at a time.
  std::function<void(std::int64_t rows, double part, double rows_per_second)> on_progress;
  /// On request the work ends between two micro-batches with Error{runtime} "interrupted", and
  /// leaves nothing behind.
  StopToken stop;
};

struct EvaluationReport : Report {
  /// What is not finite, and why: metrics, parameters of the model, rows of the data. `json` has it
  /// as `errors`. Empty where all is well.
  std::vector<Diagnostic> problems;
};

/// Loss, its terms and the configured metrics, exact over all samples of the held-out data, or of
/// `options.data`. Processes that a launcher has started together share the samples. Throws
/// Error{data} for bad rows and for vocabularies that do not fit the model.
EvaluationReport evaluate_run(const std::string& run, const TrainedOptions& options);

struct PredictOptions : TrainedOptions {
  std::string to = "-";  // .tsv, .csv, .jsonl, .npy, .npz; "-": standard output, tab separated
  /// Outputs or other values of the model; none: what the loss terms compare with labels.
  std::vector<std::string> outputs;
  /// "": probability where the loss takes binary logits, class and its probability where it takes
  /// logits of classes, else values; or "values", "class", "probability" (of all classes).
  std::string as;
  int class_axis = -1;     // the classes' axis in logits with more than two; samples are axis 0
  std::int64_t batch = 0;  // samples a micro-batch; 0: as in training
  bool header = false;     // a first line with the columns' names
  /// Text has the words of classes in place of their numbers where the model was trained with such:
  /// folders of pictures, classes(…), a vocabulary. true: there have to be some, be it those of
  /// folders next to a bare ONNX file; false: numbers.
  std::optional<bool> class_names;
  /// What identifies a row, written as text in front of its numbers: columns of a table, which need
  /// not belong to a field, "path" of pictures, arrays of the data with a number a sample.
  std::vector<std::string> ids;
};

/// One line (or index of axis 0) a row of `options.data`, in order; a row that is left out as bad
/// has nan, or -1 in place of a class. Outputs without an entry for each row, of models in which
/// data decides extents, are an object a micro-batch in .jsonl, and arrays "NAME.NUMBER" in .npz.
/// Memory does not grow with the rows of a table. A file named
/// by `to` is there once all is written; Error{usage} where predictions are made from it,
/// Error{diverged} where parameters of the model are not finite. Processes that a launcher has
/// started together take turns at the micro-batches, and rank 0 writes.
Report predict_run(const std::string& run, const PredictOptions& options);

struct BenchOptions {
  std::vector<std::string> overrides;
  std::vector<std::string> place, devices;  // as in TrainOptions
  double seconds = 3;                       // time for measured steps after warm-up
  std::string trace_path;                   // Chrome trace; empty = none
  bool check_order = false;                 // check the order of GPUs' accesses; slower
};
Report bench(const std::string& config_path, const BenchOptions& options);
/// Benchmarks one kernel: "adamw" on that many elements.
Report bench_kernel(const std::string& kernel, std::int64_t elements, double seconds);
/// Processes that a launcher has started together also measure what lies between them; `ranks`:
/// there have to be several.
Report doctor(bool ranks = false);

/// The rank as which a launcher of several processes (mpirun, srun, `tandem launch`) has started
/// this one.
struct Launched {
  int rank = 0, ranks = 1;
};
/// Reads the variables that launchers set. Throws Error{usage} where their values are impossible,
/// and for launchers whose processes could not find each other.
Launched launched();

struct DataOptions {
  std::vector<std::string> overrides;                  // keys of train.toml
  std::function<void(const std::string&)> on_message;  // progress, for people
  /// For `data_prepare`: on request it ends with Error{runtime} "interrupted", and removes what was
  /// written of a table.
  StopToken stop;
};
/// Turns the text tables of a train.toml into arrays in `data.cache`, where they are not there yet.
/// The report says "up to date", or what was made. Other kinds of data need no preparing.
Report data_prepare(const std::string& config_path, const DataOptions& options = {});

struct DataReport {
  Report report;
  bool bad = false;  // rows, pictures, labels or ids that training would refuse
};
/// Reads all data without writing: samples, per field the least and greatest values and the missing
/// ones, and the first bad rows of each file. Compares labels and ids with the model, where that
/// can be read.
DataReport data_check(const std::string& config_path, const DataOptions& options = {});

struct DataBenchOptions {
  DataOptions data;
  double seconds = 2;  // for each number of threads
  int threads = 0;     // the most; 0: all cores
};
/// What the loader of the training data gives without a model, by its number of threads (1, 2, 4,
/// …): samples and bytes a second, what its threads spend reading, decoding, transforming and
/// copying, and which of these bounds it. Reads all fields of the configuration.
Report data_bench(const std::string& config_path, const DataBenchOptions& options = {});

/// All keys of train.toml (or of policy.toml) with type, default and help; or one of them.
std::string config_keys(bool json, bool policy = false);
std::string config_explain(const std::string& key, bool policy = false);
/// The JSON Schema of the file, for editors.
std::string config_schema(bool policy = false);
/// Writes the JSON Schemas of both files into the folder `.tandem` below `folder`, over those of an
/// earlier version. The report has the first lines by which train.toml and policy.toml name them.
Report config_install_schemas(const std::string& folder);
/// Whether an argument sets a key of train.toml ("model.file=moved.onnx"), and is not the file of
/// an array ("images=t10k.gz") or a file of that name.
bool is_setting(const std::string& argument);

}  // namespace tandem::api
