// The public C++ library but for train_config.h: see what is in a model, train it, export it.
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
#include "tandem/session.h"
#include "tandem/stop.h"
#include "tandem/trainer.h"

namespace tandem::api {

/// Version of the library, "0.1.0".
std::string version();

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
