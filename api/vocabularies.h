// The vocabularies of a run beside its weights.
#pragma once

#include <string>
#include <vector>

#include "engine/training/data/data_source.h"

namespace tandem::api {

/// Throws Error{data} where the run was trained with other ids than these.
void refuse_other_vocabularies(const std::string& run_dir,
                               const std::vector<SavedVocabulary>& vocabularies);

/// Copies a run's vocabularies beside an exported file: MODEL.vocabulary.NAME.tsv. What was
/// written.
std::vector<std::string> export_vocabularies(const std::string& run_dir, const std::string& to);

}  // namespace tandem::api
