// The arrays of `data.kind = "chat"`: lines become conversations, tokens and samples when the data
// is opened.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/data/array_set.h"
#include "engine/data/data_source.h"
#include "engine/data/tokens/token_counts.h"

namespace tandem {

/// Null splits where there are none, or where something was reported.
struct ChatSplits {
  std::shared_ptr<const ArraySet> train, eval;
  std::optional<SavedVocabulary> vocabulary;
  std::vector<std::string> warnings = {};
  std::optional<TokenCounts> train_tokens = {}, eval_tokens = {};
};

/// Opens the arrays of these names.
ChatSplits read_chat(const DataConfig& config, const ArrayNames& names, const OpenOptions& options,
                     std::vector<Diagnostic>& errors);

}  // namespace tandem
