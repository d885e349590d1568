// The keys of [optimizer] that follow from the list of optimizers: their table, their reader and
// their writer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/training/config/config_keys.h"
#include "engine/training/config/config_reader.h"

namespace tandem {

/// optimizer.kind, optimizer.lr and the settings of all kinds; those of several kinds stand once.
const std::vector<KeyInfo>& optimizer_keys();
/// The same of optimizer.groups[].
const std::vector<KeyInfo>& group_keys();

/// Reads kind, rate and settings; reports those that the kind does not know, that are out of its
/// range, or that do not fit together.
OptimizerOptions read_optimizer_options(const TableReader& table);
/// Those of a group: what the group says, else what the optimizer's table says, else the default
/// of the group's kind. `base`: the options of that table, whose mistakes were reported.
OptimizerOptions read_group_options(const TableReader& table, const TableReader& group,
                                    const OptimizerOptions& base);

/// Keys and values as TOML, in the order of the resolved file.
std::vector<std::pair<std::string, std::string>> optimizer_lines(const OptimizerOptions& options);

}  // namespace tandem
