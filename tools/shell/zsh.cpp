// The completion script for zsh.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/shell/shells.h"

namespace tandem::tool {
namespace {

/// {0}: cases from a command and a word to the next command; {1}: cases from a command to what it
/// takes.
constexpr const char* zsh_script = R"(#compdef tandem
# Completions of tandem for zsh, made by: tandem completion zsh
_tandem() {{
  local command= word
  local -i at start=1
  local -a commands
  for ((at = 2; at < CURRENT; ++at)); do
    word=$words[at]
    case "$command $word" in
{0}    esac
  done
  words=("$words[1]" "${{(@)words[start+1,-1]}}")
  ((CURRENT -= start - 1))
  case $command in
{1}  esac
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _tandem "$@"
else
  compdef _tandem tandem
fi
)";

/// The text with backslashes before what _arguments and _describe would read as their own.
std::string for_zsh(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string action_of(const OptionFacts& option) {
  if (option.choices.empty()) return "_files";
  return fmt::format("({})", fmt::join(option.choices, " "));
}

/// The specifications that _arguments takes for one option, one for each of its names.
std::string specifications(const OptionFacts& option) {
  if (option.positional) {
    const std::string place = option.repeatable ? "*" : option.required ? ":" : "::";
    return " " +
           in_single_quotes(fmt::format("{}{}:{}", place,
                                        option.repeatable ? ":" + for_zsh(option.names.front())
                                                          : for_zsh(option.names.front()),
                                        action_of(option)));
  }
  std::string result;
  for (const std::string& name : option.names) {
    std::string text = option.repeatable ? "*" : "";
    if (!option.repeatable && option.names.size() > 1)
      text = fmt::format("({})", fmt::join(option.names, " "));
    text += fmt::format("{}[{}]", name, for_zsh(first_line(option.help)));
    if (!option.value.empty()) {
      text += fmt::format("{}{}:{}", option.value_may_be_absent ? "::" : ":", for_zsh(option.value),
                          action_of(option));
    }
    result += " " + in_single_quotes(text);
  }
  return result;
}

}  // namespace

std::string zsh_completion(const std::vector<CommandFacts>& commands) {
  std::string steps, cases;
  for (const Transition& step : transitions(commands)) {
    steps +=
        fmt::format("      \"{}\") command=\"{}\" start=$at ;;\n", step.from_and_word, step.to);
  }
  const auto help_of = [&](const std::string& name) {
    for (const CommandFacts& command : commands) {
      if (command.name == name) return for_zsh(first_line(command.help));
    }
    return std::string();
  };
  for (const CommandFacts& command : commands) {
    std::string options;
    for (const OptionFacts& option : command.options) options += specifications(option);
    const bool lists = !command.subcommands.empty() || command.starts_a_command;
    cases += fmt::format("    {})\n", in_single_quotes(command.name));
    if (lists) {
      const std::vector<std::string>& next =
          command.starts_a_command ? commands.front().subcommands : command.subcommands;
      const std::string prefix =
          command.name.empty() || command.starts_a_command ? "" : command.name + " ";
      cases += "      commands=(";
      for (const std::string& name : next)
        cases += " " + in_single_quotes(name + ":" + help_of(prefix + name));
      cases += ")\n      [[ $words[CURRENT] != -* ]] && _describe command commands && return\n";
    }
    cases += fmt::format("      _arguments{} ;;\n", options);
  }
  return fmt::format(fmt::runtime(zsh_script), steps, cases);
}

}  // namespace tandem::tool
