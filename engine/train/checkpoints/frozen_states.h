// States of which checkpoints hold only the hash: frozen weights next to adapters, and a teacher's.
#pragma once

#include <map>
#include <string>

#include "engine/config/run_config.h"
#include "engine/runtime/program.h"

namespace tandem {

/// The sha256 of each state's row-major bytes, by name; without sharded states, of which no rank
/// has the whole.
std::map<std::string, std::string> frozen_hashes(const StateStore& states);
/// `hashes` of a checkpoint without those of sharded states that `now` does not have: a single rank
/// cannot compute these (engine/train/group/shared_hashes.h).
std::map<std::string, std::string> without_unknown(std::map<std::string, std::string> hashes,
                                                   const StateStore& states,
                                                   const std::map<std::string, std::string>& now);

/// Throws Error{usage}, naming the file and the first such state that has other values or is in
/// only one of the two maps. `checkpoint`: the path of the checkpoint that `before` comes from.
void refuse_other_frozen(const std::map<std::string, std::string>& before,
                         const std::map<std::string, std::string>& now, const RunConfig& config,
                         const std::string& checkpoint);

}  // namespace tandem
