// What a run has trained in use: evaluation, prediction, exported files.
#pragma once

#include "tandem/policy.h"

namespace tandem::api::inline v1 {

/// Which model is used, and how. `run`: a run directory, one of its checkpoints, or an ONNX file that `export_run` has
/// written, with `config`. Without that, or of any other ONNX file, loss and fields are guessed from it and `data`,
/// which is then a file or a folder, as `tandem init` does.
struct TrainedOptions {
  std::string
      checkpoint;       ///< "best", "latest" or a step; "": the best one where the run has chosen one, else the latest
  std::string weights;  ///< "trained", "ema" or "swa"; "": those that the run evaluates (eval.weights)
  /// Use a model that has changed since the checkpoint was written; without this flag that is Error{usage}. The
  /// report's warnings say what was accepted.
  bool accept_changes = false;
  std::string config;  ///< the train.toml of an exported model
  /// A word that the vocabularies of the training data lack is Error{data} with its row, instead of the row 0 of its
  /// table and a warning where there are many. Bad rows are then never left out.
  bool strict_words = false;
  /// Files in the format of the configuration's [data]: "rows.tsv", "-" (standard input, tables only),
  /// "images=t10k.gz" where files have names.
  std::vector<std::string> data;
  std::vector<std::string> overrides, place, devices;  ///< on top of the training's, as in TrainOptions
  std::function<void(const std::string&)> on_message;  ///< notes for people
  /// After each micro-batch. `part`: fraction of the input, 0 to 1; negative where its length is not known. While
  /// `evaluate_run` reads text tables, before its first micro-batch, `rows` is 0 and `part` the fraction that was read;
  /// calls then come from several threads, one at a time.
  std::function<void(std::int64_t rows, double part, double rows_per_second)> on_progress;
  StopToken stop;  ///< ends between two micro-batches with Error{runtime} "interrupted", and leaves nothing behind
};

struct EvaluationReport : Report {
  std::vector<Diagnostic> problems;  ///< what is not finite, and why: metrics, parameters, rows; `errors` in `json`
};
/// Loss, its terms and the configured metrics, exact over all samples of the held-out data, or of `options.data`.
/// Processes that a launcher has started together share the samples. Throws Error{data} for bad rows and for
/// vocabularies that do not fit the model.
EvaluationReport evaluate_run(const std::string& run, const TrainedOptions& options);

struct PredictOptions : TrainedOptions {
  std::string to = "-";              ///< .tsv, .csv, .jsonl, .npy, .npz; "-": standard output, tab separated
  std::vector<std::string> outputs;  ///< values of the model; none: what the loss terms compare with labels
  /// "": probability where the loss takes binary logits, class and its probability where it takes logits of classes,
  /// else values; or "values", "class", "probability" (of all classes).
  std::string as;
  int class_axis = -1;     ///< the classes' axis in logits with more than two; samples are axis 0
  std::int64_t batch = 0;  ///< samples a micro-batch; 0: as in training
  bool header = false;     ///< a first line with the columns' names
  /// Text has words of classes in place of numbers where the model was trained with such: folders of pictures,
  /// classes(…), a vocabulary. true: there have to be some, if need be of folders next to a bare ONNX file; false:
  /// none.
  std::optional<bool> class_names;
  /// What identifies a row, written as text in front of its numbers: columns of a table, which need not belong to a
  /// field, "path" of pictures, arrays of the data with a number a sample.
  std::vector<std::string> ids;
};
/// One line (or index of axis 0) a row of `options.data`, in order; a row that is left out as bad has nan, or -1 in
/// place of a class. Outputs without an entry for each row, of models in which data decides extents, are an object a
/// micro-batch in .jsonl, and arrays "NAME.NUMBER" in .npz. Memory does not grow with the rows of a table. A file named
/// by `to` is there once all is written; Error{usage} where predictions are made from it, Error{diverged} where
/// parameters of the model are not finite. Processes that a launcher has started together take turns at the
/// micro-batches, and rank 0 writes.
Report predict_run(const std::string& run, const PredictOptions& options);

/// How tensors are renamed in .safetensors and .npz: `strip` is removed where a name begins so, `add` is put in front.
struct ExportNames {
  std::string strip, add;
};
struct ExportAdapters {  // what becomes of adapters (parameters.lora)
  /// "merged": they go into the weights that they belong to; "separate": they stay tensors of their own, in an .onnx
  /// with nodes next to the products; "inputs": of an .onnx, whose nodes read zeros where these are not fed.
  std::string lora = "merged";
  /// Only adapters. "peft": a folder with adapter_model.safetensors and adapter_config.json, or a .safetensors file
  /// with the latter next to it; "onnx-adapter": an .onnx_adapter for those inputs. "": decided by the name's ending.
  std::string format;
};
/// What is done to the graph of an exported .onnx, in this order; by default nothing.
struct ExportForm {
  /// The model ends in these values, which may lie inside its graph; what they do not need is removed, weights
  /// included. Empty: the model's own outputs.
  std::vector<std::string> outputs;
  bool fold_batch_norm = false;  ///< into the weights of the Conv, ConvTranspose or Gemm before it
  bool fp16 = false;  ///< weights and computation; not inputs, outputs, normalizations, softmax and reductions
  int opset = 0;      ///< version of ai.onnx; 0: the model's own
  bool changes() const { return !outputs.empty() || fold_batch_norm || fp16 || opset != 0; }
};
struct ExportSettings {
  std::string checkpoint, weights;  ///< as in TrainedOptions
  bool accept_changes = false;      ///< as there
  ExportNames names;
  ExportAdapters adapters;
  ExportForm form;
  std::vector<std::string> overrides;  ///< keys of train.toml: "model.file=moved/model.onnx"
};
/// Writes the weights of a run directory or checkpoint: .onnx (the user's own graph in inference form), .safetensors or
/// .npz. Returns which checkpoint was taken and what was written. Throws Error{usage} where an .onnx would be made of
/// another model than was trained, unless `accept_changes`; for `names` of an .onnx, or that make two names equal; for
/// values that the model does not make, an opset that ONNX's converter does not reach, a form of no .onnx.
std::string export_run(const std::string& run_or_checkpoint, const std::string& to,
                       const ExportSettings& settings = {});

struct VerifyOptions : TrainedOptions {  // `data`: as in `evaluate_run`
  std::int64_t samples = 8;              ///< for a file with a fixed batch, its size
  /// Numbers agree where |file - run| <= absolute + relative |run|. 0, 0: 1e-5, 1e-4; for a file in float16 1e-2, 1e-2.
  double absolute = 0, relative = 0;
  std::string python = "python3";  ///< with onnxruntime, which computes the file as well; "": none
};
struct VerifyReport : Report {
  bool agrees = true;
};
/// Runs an exported .onnx and the run that it comes from on the same samples, both in float32 on the host, and compares
/// all outputs with an entry for each sample. Samples are the first of `options.data`, else of the run's held-out or
/// training data, else (the report says why) made up. onnxruntime computes the file as well where `python` has it.
VerifyReport verify_export(const std::string& run, const std::string& exported, const VerifyOptions& options = {});

}  // namespace tandem::api::inline v1
