// Applies what an exported model records of its training to a guessed configuration, so that ids,
// scales and losses stay those that its weights were trained with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/init/draft.h"

namespace tandem::api {

struct DataFacts;  // api/init/facts.h

struct RecordedTraining {
  std::vector<std::string> keys;  // "data.fields.x={ … }", with the files of vocabularies
  bool has_loss = false;          // the keys include the loss's terms with all their fields
  std::map<std::string, std::string> todos;  // by field: why its key cannot be used as it is
  std::vector<std::string> notes;
};

/// The record in the model's file, where it was exported from a training on data of this kind; else
/// empty. Paths in the keys are relative to `folder` where that is near. Keys that an override sets
/// are left out.
RecordedTraining recorded_training(const std::string& model, const std::string& data,
                                   const std::string& folder,
                                   const std::vector<std::string>& overrides);

/// Sets the keys in the draft. Columns of a field that the data lacks become a todo of their own.
void lay_over(const RecordedTraining& recorded, const std::string& model, const DataFacts& data,
              Draft& draft);

}  // namespace tandem::api
