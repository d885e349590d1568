// What the classes of a trained model are called: of a run by its data, of an exported model by its
// own metadata.
#pragma once

#include <map>
#include <string>

#include "api/use/trained_run.h"
#include "engine/training/metrics/field_words.h"

namespace tandem::api {

/// As the model was trained. What a guessed configuration says of them does not count. Throws
/// Error{data} where a file of the run is not that of the training.
FieldWords trained_words(const TrainedModel& trained);

/// For the metadata of an export: "class_names.FIELD" is the JSON list of the words of labels.
std::map<std::string, std::string> words_metadata(const RunConfig& config,
                                                  const std::string& run_dir);
FieldWords exported_words(const std::map<std::string, std::string>& metadata);

}  // namespace tandem::api
