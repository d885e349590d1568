// What `--help` knows about every command, as values: completions and manual pages are made of it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace tandem::tool {

struct OptionFacts {
  std::vector<std::string> names;    // "-v", "--verbose"; the argument's name if `positional`
  std::string value;                 // what it takes, such as FILE; "" for a flag
  std::vector<std::string> choices;  // the words it accepts; empty if it accepts others
  std::string help;
  bool positional = false, required = false, repeatable = false;
  bool value_may_be_absent = false;
};

struct CommandFacts {
  std::string name;  // "policy plan"; "" for the program itself
  std::string help, footer;
  std::vector<OptionFacts> options;  // positional ones first
  std::vector<std::string> subcommands;
  bool starts_a_command = false;  // a whole other command follows, as after `launch`
};

/// The program and all commands that `--help` shows, each before its subcommands.
std::vector<CommandFacts> command_facts(const CLI::App& app);

/// `value` for the texts of people: "FILE", "{graph,plan}", "" for a flag.
std::string value_text(const OptionFacts& option);

/// The part of a help text before the first line end.
std::string first_line(const std::string& text);

}  // namespace tandem::tool
