// Predictions of a model in which data decides extents.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/use/predictions/prediction_file.h"
#include "api/use/trained_run.h"
#include "engine/training/data/sample_stream.h"

namespace tandem::api {

/// What is predicted, and how a value with an entry for each sample goes out.
struct StagedPredictions {
  std::vector<std::string> outputs;  // none: those of the model
  /// Loss terms compare this one with labels: it has an entry for each sample.
  std::function<bool(const std::string& output)> has_labels;
  /// Once the types of the outputs are known, from the first batch.
  std::function<std::vector<PredictedValue>(const std::vector<std::string>& outputs,
                                            const std::vector<TensorType>& types)>
      values;
  std::function<std::vector<PredictedArray>(const std::vector<PredictedValue>& values,
                                            const std::vector<std::string>& outputs)>
      arrays;
  std::string to;
  bool as_they_are = true;  // --as says nothing, or values
  bool has_ids = false;
};

/// The inputs of the model, that samples are read for.
std::vector<std::string> inputs_in_stages(TrainedModel& trained);

/// Into the file, which is started here. Outputs have an entry for each row where their loss has
/// labels or the file declares axis 0 as that of the inputs, and fixes the others: rows then go out
/// as of any model. With another output all go out batch by batch. Gives what was written: samples'
/// types of arrays, or of the first batch. Throws Error{usage} for formats without batches.
std::vector<PredictedArray> predict_in_stages(TrainedModel& trained, SampleStream& stream,
                                              const StagedPredictions& what,
                                              const PredictOptions& options, PredictionFile& file);

}  // namespace tandem::api
