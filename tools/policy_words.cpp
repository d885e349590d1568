#include "tools/policy_words.h"

#include <filesystem>

#include "api/program/policy_files.h"
#include "tools/arguments.h"

namespace tandem::tool {
namespace {

/// Whether a word is KEY=VALUE; a path may contain `=` too, but has `/` before it.
bool sets_key(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || word.find('/') < equals) return false;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(word, ignored)) return true;
  misuse("a file has this name, and it could set a key", "./" + word + " for the file", word);
}

}  // namespace

[[noreturn]] void misuse(const std::string& what, const std::string& expected,
                         const std::string& got) {
  throw Error(ErrorKind::usage, Diagnostic{.message = what, .expected = expected, .got = got});
}

std::vector<std::string> take_words(PolicyWords& options, std::size_t most,
                                    const std::string& expected) {
  std::vector<std::string> names;
  for (const std::string& word : options.words) {
    (sets_key(word) ? options.policy.overrides : names).push_back(word);
  }
  if (names.size() > most) misuse("too many arguments", expected, names.back());
  for (const std::string& text : options.bind) {
    options.policy.bind.push_back(parse_binding(text));
  }
  return names;
}

void add_ranks(CLI::App& command, api::PolicyOptions& options) {
  command
      .add_option("--ranks", options.ranks, "Plan one of this many processes that train together")
      ->type_name("N");
  command
      .add_option(
          "--network", options.network,
          "The network between them: 100Gb/s,5us (default: the profile's, else 10Gb/s,20us)")
      ->type_name("RATE,TIME");
}

void add_model(CLI::App& command, PolicyWords& options) {
  command.add_option("--config", options.policy.config, "The train.toml that it is for");
  command.add_option("--model", options.policy.model, "An ONNX file instead of a train.toml");
  command.add_option("--bind", options.bind, "Of --model: extents of free dimensions, batch=32")
      ->allow_extra_args(false);
}

void add_policy_words(CLI::App& command, PolicyWords& options, const std::string& words) {
  command.add_option("arguments", options.words, words)->type_name("");
  add_model(command, options);
  add_placing(command, options.policy.place, options.policy.devices);
  std::string accelerators;
  for (const std::string& name : api::known_accelerators())
    accelerators += (accelerators.empty() ? "" : ", ") + name;
  command
      .add_option("--profile", options.policy.profile,
                  "The GPU for the cost model, which need not be in this machine: " + accelerators +
                      "; or a stored device profile, a FILE (./h100 where it has such a name)")
      ->type_name("NAME|FILE");
}

CLI::App* add_policy_command(CLI::App& parent, const char* name, const char* help,
                             const char* examples) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->footer(std::string("Examples:\n") + examples);
  return command;
}

void take_policy(PolicyWords& options) {
  const std::vector<std::string> names = take_words(options, 1, "one policy file");
  if (!names.empty()) options.policy.policy = names[0];
}

}  // namespace tandem::tool
