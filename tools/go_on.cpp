#include "tools/go_on.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "api/program/launched.h"
#include "api/program/terminal.h"
#include "tandem/tandem.h"
#include "tools/launch_note.h"

namespace tandem::tool {

std::vector<std::string> resuming(std::vector<std::string> command, const std::string& run_dir) {
  const auto has = [&](std::string_view start) {
    return std::any_of(command.begin(), command.end(),
                       [&](const std::string& word) { return word.starts_with(start); });
  };
  std::vector<std::string> added;
  if (!has("--resume")) added.push_back("--resume");
  if (!has("--run-dir") && !has("run_dir=")) added.insert(added.end(), {"--run-dir", run_dir});
  command.insert(command.begin() + 1, added.begin(), added.end());
  return command;
}

std::string shell_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + api::for_shell(word);
  return line;
}

bool has_checkpoint(const std::string& run_dir) {
  std::error_code none;
  const std::filesystem::directory_iterator entries(run_dir + "/checkpoints", none);
  if (run_dir.empty() || none) return false;
  return std::any_of(begin(entries), end(entries), [](const auto& entry) {
    return entry.path().filename().string().starts_with("step-");
  });
}

std::string go_on_text(const Invocation& invocation, const std::string& run_dir) {
  if (!has_checkpoint(run_dir) || is_launched() || invocation.arguments.empty()) return "";
  std::vector<std::string> words;
  if (const int ranks = api::launched().ranks; ranks > 1) {
    const bool is_slurm =
        std::getenv("SLURM_STEP_ID") != nullptr && std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr;
    words = {is_slurm ? "srun" : "mpirun", is_slurm ? "-n" : "-np", std::to_string(ranks)};
  }
  words.push_back(invocation.program);
  const std::vector<std::string> command = resuming(invocation.arguments, run_dir);
  words.insert(words.end(), command.begin(), command.end());
  return "continue with: " + shell_line(words);
}

}  // namespace tandem::tool
