// The arrays of a data set's files that are no tables, whatever kind they are of.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/array_set.h"
#include "engine/data/data_source.h"
#include "engine/data/tokens/token_counts.h"

namespace tandem {

/// The arrays of both splits, null where there are none or something was reported, and what a run
/// keeps of them.
struct ReadSplits {
  std::shared_ptr<const ArraySet> train, eval;
  std::vector<SavedVocabulary> vocabularies = {};
  std::vector<std::string> warnings = {};
  std::optional<TokenCounts> train_tokens = {}, eval_tokens = {};
};

/// Opens the arrays of these names.
ReadSplits read_splits(const DataConfig& config, const ArrayNames& names,
                       const OpenOptions& options, std::vector<Diagnostic>& errors);

}  // namespace tandem
