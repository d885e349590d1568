// The completion script for bash.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/shell/shells.h"

namespace tandem::tool {
namespace {

/// {0}: cases from a command and a word to the next command; {1}: cases from a command and an
/// option to the option's words; {2}: cases from a command to its words and options.
constexpr const char* bash_script =
    R"(# Completions of tandem for bash, made by: tandem completion bash
_tandem() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local command= words= options= at
  COMPREPLY=()
  if [[ $current == "=" ]]; then
    current=
  elif [[ $previous == "=" ]] && ((COMP_CWORD > 1)); then
    previous=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  for ((at = 1; at < COMP_CWORD; ++at)); do
    case "$command ${{COMP_WORDS[at]}}" in
{0}    esac
  done
  case "$command $previous" in
{1}  esac
  case "$command" in
{2}  esac
  [[ $current == -* ]] && words=$options
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -o bashdefault -o default -F _tandem tandem
)";

}  // namespace

std::string bash_completion(const std::vector<CommandFacts>& commands) {
  std::string steps, values, words;
  for (const Transition& step : transitions(commands))
    steps += fmt::format("      \"{}\") command=\"{}\" ;;\n", step.from_and_word, step.to);
  for (const CommandFacts& command : commands) {
    std::vector<std::string> options, next = command.subcommands;
    if (command.starts_a_command) next = commands.front().subcommands;
    for (const OptionFacts& option : command.options) {
      if (option.positional) {
        next.insert(next.end(), option.choices.begin(), option.choices.end());
        continue;
      }
      options.insert(options.end(), option.names.begin(), option.names.end());
      if (option.value.empty() || option.value_may_be_absent) continue;
      std::vector<std::string> places;
      for (const std::string& name : option.names)
        places.push_back(fmt::format("\"{} {}\"", command.name, name));
      const std::string answer =
          option.choices.empty()
              ? "return ;;"  // a file or a free text
              : fmt::format(
                    "mapfile -t COMPREPLY < <(compgen -W \"{}\" -- \"$current\"); return ;;",
                    fmt::join(option.choices, " "));
      values += fmt::format("    {}) {}\n", fmt::join(places, " | "), answer);
    }
    words += fmt::format("    \"{}\") words=\"{}\" options=\"{}\" ;;\n", command.name,
                         fmt::join(next, " "), fmt::join(options, " "));
  }
  return fmt::format(fmt::runtime(bash_script), steps, values, words);
}

}  // namespace tandem::tool
