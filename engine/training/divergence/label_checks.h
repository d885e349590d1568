// Labels that make no loss: signs that are none, and labels of which none counts.
#pragma once

#include <string>
#include <vector>

#include "engine/graph/error.h"
#include "engine/training/config/loss_config.h"
#include "engine/training/data/data_source.h"

namespace tandem {

/// Each label of the term has to be -1 or 1: one between, such as the 0 of labels 0 and 1, would
/// make no loss and no error. Adds file and row of the first ones. `meaning`: what they are, for
/// messages.
void check_signs(const LossTerm& term, const DataSource& source, const std::string& meaning,
                 std::vector<Diagnostic>& problems);

/// Adds a problem where ignore_index or class weights of 0 leave out every label: the mean of the
/// term would be 0 / 0.
void check_any_label_counts(const LossTerm& term, const DataSource& source,
                            std::vector<Diagnostic>& problems);

}  // namespace tandem
