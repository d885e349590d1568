// Names of the classes of a trained model: from the data of a run, or from the metadata of an
// exported model.
#pragma once

#include <map>
#include <string>

#include "api/trained/trained_run.h"
#include "engine/train/evaluation/field_words.h"

namespace tandem::api {

/// The names that the model was trained with. Those of a guessed configuration do not count. Throws
/// Error{data} where a file of the run differs from that of the training.
FieldWords trained_words(const TrainedModel& trained);

/// Metadata of an export: "class_names.FIELD" is the JSON list of the names in labels.
std::map<std::string, std::string> words_metadata(const RunConfig& config,
                                                  const std::string& run_dir);
FieldWords exported_words(const std::map<std::string, std::string>& metadata);

}  // namespace tandem::api
