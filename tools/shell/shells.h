// The shells that complete `tandem` commands: each gets a script from the facts about all commands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/shell/command_facts.h"

namespace tandem::tool {

std::string bash_completion(const std::vector<CommandFacts>& commands);
std::string zsh_completion(const std::vector<CommandFacts>& commands);
std::string fish_completion(const std::vector<CommandFacts>& commands);

struct Shell {
  std::string_view name;
  std::string (*completion)(const std::vector<CommandFacts>& commands);
};

inline constexpr Shell all_shells[] = {
    {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

/// The text in single quotes, as all of these shells read it.
std::string in_single_quotes(const std::string& text);

/// A pair for each step that a word makes from one command to the next: " train" leads to "train",
/// "policy plan" to "policy plan", "launch train" to "train".
struct Transition {
  std::string from_and_word, to;
};
std::vector<Transition> transitions(const std::vector<CommandFacts>& commands);

}  // namespace tandem::tool
