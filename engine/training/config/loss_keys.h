// The keys of [[loss.terms]], which follow from the list of losses: their table and their reader.
#pragma once

#include <vector>

#include "engine/training/config/config_keys.h"
#include "engine/training/config/config_reader.h"

namespace tandem {

/// The keys after loss.terms[].name: of every term, and those that the kinds have. Keys of several
/// kinds stand once.
const std::vector<KeyInfo>& loss_keys();

/// Reads [loss]; reports what is missing, what the kind does not know, and options out of its
/// range.
void read_loss(const TableReader& root, LossConfig& to);

}  // namespace tandem
