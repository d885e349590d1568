// Code shared by the subcommands of `tandem`: registration, output, errors as text or JSON.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/error.h"

namespace tandem::tool {

/// Does the chosen subcommand's work and returns the exit code.
using Action = std::function<int()>;

/// State of one invocation: subcommands set `action`; `json` decides the form of errors.
struct Invocation {
  Action action;
  bool json = false;
  std::string program = "tandem";      // name by which it was called
  std::vector<std::string> arguments;  // arguments after it
};

/// What mpirun's processes do with a subcommand: only one may run it, or all work together as
/// ranks.
enum class Processes : std::uint8_t { one, ranks };

struct Command {
  std::string_view name;
  Processes processes;
  const char* examples;  // its lines in `tandem --help`
  void (*add)(CLI::App& app, Invocation& invocation);
};

#define TANDEM_COMMAND(name, processes, examples) \
  void add_##name(CLI::App& app, Invocation& invocation);
#include "tools/all_commands.inl"
#undef TANDEM_COMMAND

inline constexpr Command all_commands[] = {
#define TANDEM_COMMAND(name, processes, examples) \
  {#name, Processes::processes, examples, add_##name},
#include "tools/all_commands.inl"
#undef TANDEM_COMMAND
};

inline bool works_as_ranks(std::string_view subcommand) {
  return std::any_of(std::begin(all_commands), std::end(all_commands), [&](const Command& command) {
    return command.name == subcommand && command.processes == Processes::ranks;
  });
}

/// A validator for an option's number: finite and from `low` to `high`.
inline CLI::Validator number_between(double low, double high) {
  return {[low, high](std::string& text) -> std::string {
            double value = 0;
            const bool read = CLI::detail::lexical_cast(text, value);
            if (read && value >= low && value <= high) return "";  // false for nan
            std::ostringstream message;
            message << "expected a number from " << low << " to " << high << ", got " << text;
            return message.str();
          },
          ""};
}

/// Sets what a subcommand does when it is chosen.
inline void on_choice(CLI::App& command, Invocation& invocation, Action action) {
  command.callback([action = std::move(action), &invocation] { invocation.action = action; });
}

/// Prints an error to standard error and, with `json`, as an object to standard output; returns its
/// exit code.
int report(const Error& error, bool json);

/// Prints text for people, or the JSON object for programs, to standard output.
int print(const std::string& text, const std::string& json, bool as_json);
template <class Report>
int print(const Report& report, const Invocation& invocation) {
  return print(report.text, report.json, invocation.json);
}
/// Prints a line to standard error, without characters that control a terminal.
void say(const std::string& text);
void print_warnings(const std::vector<std::string>& warnings);  // to standard error

}  // namespace tandem::tool
