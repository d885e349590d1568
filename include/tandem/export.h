// How the graph of an exported model is changed, and whether the model computes what the run does.
// Standard types only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tandem/tandem.h"

namespace tandem::api {

/// What is done to the graph of an exported .onnx, in this order; by default nothing.
struct ExportForm {
  /// The model ends in these values, which may lie inside its graph; what they do not need is
  /// removed, weights included. Empty: the model's own outputs.
  std::vector<std::string> outputs;
  /// BatchNormalization is folded into the weights of the Conv, ConvTranspose or Gemm before it.
  bool fold_batch_norm = false;
  /// Weights and computation in float16; inputs, outputs, normalizations, softmax and reductions
  /// stay float32.
  bool fp16 = false;
  int opset = 0;  // version of ai.onnx; 0: the model's own

  /// Whether the graph differs from the user's own.
  bool changes() const { return !outputs.empty() || fold_batch_norm || fp16 || opset != 0; }
};

/// `checkpoint`, `weights` and `accept_changes` as in TrainedOptions.
struct ExportSettings {
  std::string checkpoint, weights;
  bool accept_changes = false;
  ExportNames names;
  ExportAdapters adapters;
  ExportForm form;
  std::vector<std::string> overrides;  // keys of train.toml: "model.file=moved/model.onnx"
};
/// Like the `export_run` of tandem.h. Throws Error{usage} also for values that the model does not
/// make, for an opset that ONNX's converter does not reach, and for a form of another file than
/// .onnx.
std::string export_run(const std::string& run_or_checkpoint, const std::string& to,
                       const ExportSettings& settings);

struct VerifyOptions : TrainedOptions {  // `data`: as in `evaluate_run`
  std::int64_t samples = 8;              // for a file with a fixed batch, its size
  /// Numbers agree where |file - run| <= absolute + relative |run|. 0 and 0: 1e-5 and 1e-4, for a
  /// file in float16 1e-2 and 1e-2.
  double absolute = 0, relative = 0;
  std::string python = "python3";  // with onnxruntime, which computes the file as well; "": none
};
struct VerifyReport : Report {
  bool agrees = true;
};
/// Runs an exported .onnx and the run that it comes from on the same samples, both in float32 on
/// the host, and compares all outputs with an entry for each sample. Samples are the first of
/// `options.data`, else of the run's held-out or training data, else (the report says why) made up
/// from a seed. onnxruntime computes the file as well where `python` has it.
VerifyReport verify_export(const std::string& run, const std::string& exported,
                           const VerifyOptions& options = {});

}  // namespace tandem::api
