// The program's commands in the folder of a case; case_folder.h describes them.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tandem::testing {

/// A command with its words, and the lines that follow it.
struct CaseCommand {
  using Words = std::vector<std::string>;

  CaseCommand(const std::string& folder, Words words, Words lines);

  bool has(const std::string& option) const { return options.contains(option); }
  std::string value(const std::string& option, const std::string& otherwise = "") const;
  Words values(const std::string& option) const;
  std::string path(const std::string& name) const;
  std::string word(std::size_t i) const { return i < words.size() ? words[i] : ""; }

  std::string folder;
  Words words, lines;
  std::multimap<std::string, std::string> options;  // without "--"
  Words pointers, overrides;
};

/// What it says, or its error; "no such command" if there is none.
std::string said_by(const CaseCommand& command);

}  // namespace tandem::testing
