// The completion script for fish.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/shell/shells.h"

namespace tandem::tool {
namespace {

/// {}: cases from a command and a word to the next command.
constexpr const char* fish_head =
    R"(# Completions of tandem for fish, made by: tandem completion fish
function __tandem_at
    set -l command ''
    for word in (commandline -opc)[2..]
        switch "$command $word"
{}        end
    end
    test "$command" = "$argv[1]"
end
complete -c tandem -e
)";

}  // namespace

std::string fish_completion(const std::vector<CommandFacts>& commands) {
  std::string steps;
  for (const Transition& step : transitions(commands)) {
    steps += fmt::format("            case '{}'\n                set command '{}'\n",
                         step.from_and_word, step.to);
  }
  std::string script = fmt::format(fmt::runtime(fish_head), steps);
  for (const CommandFacts& command : commands) {
    const auto complete_at = [&](const std::string& place) {
      return fmt::format("complete -c tandem -n '__tandem_at \"{}\"'", place);
    };
    const std::string here = complete_at(command.name);
    if (!command.name.empty()) {
      const std::size_t space = command.name.rfind(' ');
      const bool nested = space != std::string::npos;
      const std::string word = nested ? command.name.substr(space + 1) : command.name;
      const std::string help = in_single_quotes(first_line(command.help));
      const std::string entry = fmt::format(" -f -a '{}' -d {}\n", word, help);
      script += complete_at(nested ? command.name.substr(0, space) : "") + entry;
      for (const CommandFacts& other : commands) {
        if (!nested && other.starts_a_command) script += complete_at(other.name) + entry;
      }
    }
    for (const OptionFacts& option : command.options) {
      std::string line = here;
      if (option.positional) {
        if (option.choices.empty()) continue;
        script += fmt::format("{} -f -a '{}'\n", line, fmt::join(option.choices, " "));
        continue;
      }
      for (const std::string& name : option.names)
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.choices.empty())
        line += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
      else if (!option.value.empty() && !option.value_may_be_absent)
        line += " -r";
      script += line + " -d " + in_single_quotes(first_line(option.help)) + "\n";
    }
  }
  return script;
}

}  // namespace tandem::tool
