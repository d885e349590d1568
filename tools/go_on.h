// Prints the command that resumes a training which has ended early.
#pragma once

#include <string>
#include <vector>

#include "tools/command.h"

namespace tandem::tool {

/// The words of a `train` command that resumes in this run directory, whatever other runs exist.
std::vector<std::string> resuming(std::vector<std::string> command, const std::string& run_dir);

/// The words as one line for a shell.
std::string shell_line(const std::vector<std::string>& words);

/// Whether the run directory has a checkpoint to resume from.
bool has_checkpoint(const std::string& run_dir);

/// "continue with: tandem train train.toml --resume --run-dir runs/train-0001", with the launcher
/// where several processes trained; "" where there is nothing to resume from, or where `tandem
/// launch` has started this process and prints it itself.
std::string go_on_text(const Invocation& invocation, const std::string& run_dir);

}  // namespace tandem::tool
