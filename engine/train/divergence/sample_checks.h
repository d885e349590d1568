// Checks samples of the data that a loss refuses, whatever the model makes of them.
#pragma once

#include <vector>

#include "engine/config/run_config.h"
#include "engine/data/data_source.h"
#include "engine/graph/error.h"

namespace tandem {

/// Asks the kind of the term about every sample; `scores` is the type of its first value. Does
/// nothing where the kind refuses none, or the source lacks the labels.
void check_samples(const LossTerm& term, const Shape& scores, const DataSource& source,
                   std::vector<Diagnostic>& problems);

}  // namespace tandem
