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

/// All keys of [optimizer] from its kind to its groups.
const std::vector<KeyInfo>& optimizer_rows();
/// Reads them from the table "optimizer"; reports settings that a kind does not know, that are out
/// of its range, or that do not fit together. A group has what it says, else what the optimizer's
/// table says, else the default of its kind.
void read_optimizer(const TableReader& table, OptimizerConfig& to);
/// Keys and values as TOML, in the order of the resolved file.
std::vector<std::pair<std::string, std::string>> optimizer_lines(const OptimizerConfig& config);

}  // namespace tandem
