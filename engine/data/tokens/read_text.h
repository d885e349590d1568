// The arrays of `data.kind = "text"`: text becomes tokens when it is opened, and windows of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/array_set.h"
#include "engine/data/data_source.h"
#include "engine/data/vocabulary.h"
#include "engine/formats/tokenizer/tokenizer.h"

namespace tandem {

/// Null splits where there are none, or where something was reported.
struct TextSplits {
  std::shared_ptr<const ArraySet> train, eval;
  std::optional<SavedVocabulary> vocabulary;  // the file that decides the ids
  std::vector<std::string> warnings = {};     // about tokens that it lacks
};

/// Opens the arrays of these names. Characters are those of the training data, or
/// `options.characters`.
TextSplits read_text(const DataConfig& config, const ArrayNames& names, const OpenOptions& options,
                     std::vector<Diagnostic>& errors);

/// The files of a run that define what ids mean.
inline constexpr const char* tokenizer_file = "tokenizer.json";
inline constexpr const char* characters_file = "vocabulary.characters.tsv";
/// A tokenizer as a run keeps it: a copy of the file.
SavedVocabulary saved_tokenizer(const Tokenizer& tokenizer, const std::string& path);

}  // namespace tandem
