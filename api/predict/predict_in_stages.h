// Predicts with a model in which data decides extents.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/predict/prediction_file.h"
#include "api/trained/trained_run.h"
#include "engine/data/sample_stream.h"

namespace tandem::api {

/// What is predicted, and how a value with an entry for each sample is written.
struct StagedPredictions {
  std::vector<std::string> outputs;  // empty: the outputs of the model
  /// Whether loss terms compare this output with labels: it then has an entry for each sample.
  std::function<bool(const std::string& output)> has_labels;
  /// Called when the types of the outputs are known from the first batch.
  std::function<std::vector<PredictedValue>(const std::vector<std::string>& outputs,
                                            const std::vector<TensorType>& types)>
      values;
  std::function<std::vector<PredictedArray>(const std::vector<PredictedValue>& values,
                                            const std::vector<std::string>& outputs)>
      arrays;
  std::string to;
  bool as_they_are = true;  // --as is absent, or "values"
  bool has_ids = false;
};

/// The inputs of the model, for which samples are read.
std::vector<std::string> inputs_in_stages(TrainedModel& trained);

/// Writes predictions into `file`, which is started here. An output has an entry for each row where
/// its loss has labels, or where the file declares axis 0 as that of the inputs and fixes the other
/// axes: rows are then written as for any model. If one output is different, all are written batch
/// by batch. Returns what was written: arrays with types per sample, or with types of the first
/// batch. Throws Error{usage} for formats without batches.
std::vector<PredictedArray> predict_in_stages(TrainedModel& trained, SampleStream& stream,
                                              const StagedPredictions& what,
                                              const PredictOptions& options, PredictionFile& file);

}  // namespace tandem::api
