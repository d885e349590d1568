// Manual pages in the language of man(7), from the facts about all commands.
#pragma once

#include <string>
#include <vector>

#include "tools/shell/command_facts.h"

namespace tandem::tool {

struct ManualPage {
  std::string name;  // "tandem-train", also of the file: tandem-train.1
  std::string text;
};

/// One page for the program, one for each command with its subcommands. They hold no date, so that
/// the same version has the same bytes.
std::vector<ManualPage> manual_pages(const std::vector<CommandFacts>& commands,
                                     const std::string& version);

}  // namespace tandem::tool
