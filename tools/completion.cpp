// tandem completion bash|zsh|fish
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tools/command.h"
#include "tools/shell/shells.h"

namespace tandem::tool {

void add_completion(CLI::App& app, Invocation& invocation) {
  auto name = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "Print the completions of all commands for a shell");
  command->group("");  // not in --help: packages install what it prints
  std::vector<std::string> names;
  for (const Shell& shell : all_shells) names.emplace_back(shell.name);
  command->add_option("shell", *name, "bash, zsh or fish")->required()->check(CLI::IsMember(names));
  command->footer("Example: source <(tandem completion bash)");
  on_choice(*command, invocation, [name, &app] {
    for (const Shell& shell : all_shells) {
      if (shell.name == *name) std::fputs(shell.completion(command_facts(app)).c_str(), stdout);
    }
    return 0;
  });
}

}  // namespace tandem::tool
