// Arguments that the subcommands of `tandem policy` share: the policy, its model, keys.
#pragma once

#include <string>
#include <vector>

#include "tandem/tandem.h"
#include "tools/command.h"

namespace tandem::tool {

/// What the command line says about a policy and its model.
struct PolicyWords {
  api::PolicyOptions policy;
  std::vector<std::string> words, bind;
};

[[noreturn]] void misuse(const std::string& what, const std::string& expected,
                         const std::string& got);

/// A subcommand of `tandem policy`.
CLI::App* add_policy_command(CLI::App& parent, const char* name, const char* help,
                             const char* examples);
/// Words, --config, --model, --bind, --place, --device and --profile. `words`: what words mean.
void add_policy_words(CLI::App& command, PolicyWords& options, const std::string& words);
/// --config, --model and --bind.
void add_model(CLI::App& command, PolicyWords& options);
void add_ranks(CLI::App& command, api::PolicyOptions& options);

inline constexpr const char* policy_words =
    "The policy.toml (default: the configuration's; ./a=b.toml where its name has a =) and keys of "
    "train.toml: batch_size=64";

/// Moves words that set keys of train.toml to the overrides; returns the others as names, at most
/// `most`.
std::vector<std::string> take_words(PolicyWords& options, std::size_t most,
                                    const std::string& expected);
/// As above, where at most the policy is named.
void take_policy(PolicyWords& options);

/// Its file has one of them: tools/policy_page.cpp.
void add_policy_page(CLI::App& parent, Invocation& invocation);

}  // namespace tandem::tool
