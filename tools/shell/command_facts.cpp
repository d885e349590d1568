#include "tools/shell/command_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tandem::tool {
namespace {

/// "TEXT:{graph,plan}" has two choices; other validators describe none.
std::vector<std::string> choices_of(const std::string& type) {
  const std::size_t open = type.find(":{"), close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 2, close - open - 2), ',');
}

OptionFacts facts_of(const CLI::Option& option) {
  OptionFacts facts;
  facts.positional = option.get_positional();
  if (facts.positional) {
    facts.names.push_back(option.get_name());
  } else {
    for (const std::string& name : option.get_snames()) facts.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) facts.names.push_back("--" + name);
  }
  const std::string type = option.get_type_name();
  if (option.get_items_expected_max() > 0) facts.value = type.substr(0, type.find(':'));
  if (option.get_items_expected_max() > 0 && facts.value.empty()) facts.value = "VALUE";
  facts.choices = choices_of(type);
  facts.help = option.get_description();
  facts.required = option.get_required();
  facts.repeatable = option.get_items_expected_max() > 1 ||
                     option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  facts.value_may_be_absent = option.get_items_expected_min() == 0;
  return facts;
}

void add_facts(const CLI::App& app, const std::string& name, std::vector<CommandFacts>& to) {
  CommandFacts facts{.name = name, .help = app.get_description(), .footer = app.get_footer()};
  std::vector<OptionFacts> named;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    (option->get_positional() ? facts.options : named).push_back(facts_of(*option));
  }
  facts.options.insert(facts.options.end(), named.begin(), named.end());
  facts.starts_a_command = name == "launch";
  const auto subcommands =
      app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
  for (const CLI::App* command : subcommands) facts.subcommands.push_back(command->get_name());
  to.push_back(std::move(facts));
  for (const CLI::App* command : subcommands)
    add_facts(*command, name.empty() ? command->get_name() : name + " " + command->get_name(), to);
}

}  // namespace

std::vector<CommandFacts> command_facts(const CLI::App& app) {
  std::vector<CommandFacts> facts;
  add_facts(app, "", facts);
  return facts;
}

std::string value_text(const OptionFacts& option) {
  if (option.choices.empty()) return option.value;
  return fmt::format("{{{}}}", fmt::join(option.choices, ","));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace tandem::tool
