// The options of optimizers as keys: their table, their reader and their lines.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/training/config/config_keys.h"
#include "engine/training/config/config_reader.h"

namespace tandem {

/// The keys of [optimizer] from its kind to its groups.
const std::vector<KeyInfo>& optimizer_rows();
/// Reads them from the table "optimizer".
void read_optimizer(const TableReader& table, OptimizerConfig& to);
/// Keys and TOML of a configuration's.
std::vector<std::pair<std::string, std::string>> optimizer_lines(const OptimizerConfig& config);

}  // namespace tandem
