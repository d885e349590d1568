#include "tools/shell/shells.h"

namespace tandem::tool {

std::string in_single_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<Transition> transitions(const std::vector<CommandFacts>& commands) {
  std::vector<Transition> found;
  for (const CommandFacts& command : commands) {
    for (const std::string& word : command.subcommands) {
      const std::string to = command.name.empty() ? word : command.name + " " + word;
      found.push_back({command.name + " " + word, to});
    }
    if (!command.starts_a_command) continue;
    for (const std::string& word : commands.front().subcommands)
      found.push_back({command.name + " " + word, word});
  }
  return found;
}

}  // namespace tandem::tool
