// The functions of fields that give ids which no vocabulary keeps: others make a trained model mean
// other rows.
#pragma once

#include <map>
#include <string>

#include "engine/config/run_config.h"

namespace tandem {

/// By field "hash(300)", "log1p, bucketize(1, 10)": `classes`, `hash` and `bucketize` with what the
/// ids depend on, all functions before them that change numbers; "" for fields without one. For
/// fields with one of them or a vocabulary also "FIELD/cells": "missing('-1'), split('|', pad=0)",
/// which values the text of their columns holds.
std::map<std::string, std::string> id_functions(const DataConfig& config);

/// Error{usage} where a field of the configuration has others than `before`, those that the `who`
/// ("run", "exported model") was trained with. Fields that are not named there are fine.
void refuse_other_functions(const std::map<std::string, std::string>& before,
                            const RunConfig& config, const std::string& who,
                            const std::string& other_fix);

}  // namespace tandem
