// What an exported model records of its training, laid over a configuration that is guessed: ids,
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
  bool has_loss = false;          // they say its terms, with the fields of these
  std::map<std::string, std::string> todos;  // by field: why its key cannot be used as it is
  std::vector<std::string> notes;
};

/// What the model's file records, where it was exported from a training on data of this kind; else
/// nothing. Paths in the keys are relative to `folder`, where that is near. Keys that an override
/// sets are left out.
RecordedTraining recorded_training(const std::string& model, const std::string& data,
                                   const std::string& folder,
                                   const std::vector<std::string>& overrides);

/// Sets the keys in the draft. What a field is made of and the data lacks is a todo of its own.
void lay_over(const RecordedTraining& recorded, const std::string& model, const DataFacts& data,
              Draft& draft);

}  // namespace tandem::api
