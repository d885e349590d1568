// States that checkpoints hold the hash of alone: frozen weights beside adapters, and a teacher's.
#pragma once

#include <map>
#include <string>

#include "engine/runtime/program.h"
#include "engine/training/config/run_config.h"

namespace tandem {

/// The sha256 of each one's row-major bytes, by name; without what ranks share out, of which no
/// rank has the whole.
std::map<std::string, std::string> frozen_hashes(const StateStore& states);
/// `hashes` of a checkpoint without those of states that ranks share out here and that `now` does
/// not have: one rank alone cannot tell them (engine/training/ranks/shared_hashes.h).
std::map<std::string, std::string> without_unknown(std::map<std::string, std::string> hashes,
                                                   const StateStore& states,
                                                   const std::map<std::string, std::string>& now);

/// Throws Error{usage}, naming the file and the first such state that has other values, or is there
/// in one of them alone. `checkpoint`: its path, of `before`.
void refuse_other_frozen(const std::map<std::string, std::string>& before,
                         const std::map<std::string, std::string>& now, const RunConfig& config,
                         const std::string& checkpoint);

}  // namespace tandem
