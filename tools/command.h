// What the subcommands of `tandem` share: registration, output, errors as text or JSON.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

namespace tandem::tool {

/// The chosen subcommand's work; its result is the exit code.
using Action = std::function<int()>;

/// State of one invocation: subcommands set `action`; `json` decides the form of errors.
struct Invocation {
  Action action;
  bool json = false;
};

// One function per subcommand, in tools/NAME.cpp.
void add_inspect(CLI::App& app, Invocation& invocation);
void add_train(CLI::App& app, Invocation& invocation);
void add_export(CLI::App& app, Invocation& invocation);
void add_bench(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);
void add_config(CLI::App& app, Invocation& invocation);

/// Text for people, or the JSON object for programs, to standard output.
int print(const std::string& text, const std::string& json, bool as_json);

}  // namespace tandem::tool
