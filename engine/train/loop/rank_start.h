// What the ranks of a run make sure of before its first step.
#pragma once

#include <string>

#include "engine/train/loop/run.h"

namespace tandem {

/// Throws where ranks do not have the same run directory: on a file system of their own.
void prove_shared(const Run& run, const std::string& run_dir);
/// Throws where the states of the ranks are not the same before the first step.
void refuse_other_states(const Run& run);
/// Records the hashes of sharded frozen states, before the first checkpoint is read or written.
void hash_sharded_frozen(Run& run);

}  // namespace tandem
