// What the numbers of data fields mean: names of classes, values that a vocabulary numbers.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/config/run_config.h"
#include "engine/data/data_source.h"

namespace tandem {

/// By field: the word of each number from 0 on, "" where a number has none.
using FieldWords = std::map<std::string, std::vector<std::string>>;

/// The fields whose words are needed: those that losses take as labels, and those in `by` of
/// metrics.
std::set<std::string> worded_fields(const RunConfig& config);

/// The words of those fields: names of the folders of pictures, the words of `classes(…)`, values
/// of a vocabulary. A field whose numbers never were such, or no longer are, is left out. `saved`:
/// the vocabularies of the training data. Throws Error{data} where a file cannot be read.
FieldWords field_words(const RunConfig& config, const std::vector<SavedVocabulary>& saved);

/// A number's word; null where it has none.
const std::string* word_of(const std::vector<std::string>& words, std::int64_t number);

}  // namespace tandem
