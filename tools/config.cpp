// tandem config keys | explain KEY | schema
#include <memory>

#include "tandem/tandem.h"
#include "tools/command.h"

namespace tandem::tool {

void add_config(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand("config", "Explain the keys of train.toml");
  command->require_subcommand(1);
  CLI::App* keys = command->add_subcommand("keys", "All keys with type, default and meaning");
  keys->add_flag("--json", invocation.json, "One JSON object on standard output");
  keys->callback([&invocation] {
    invocation.action = [&invocation] {
      return print(api::config_keys(false), api::config_keys(true), invocation.json);
    };
  });
  auto key = std::make_shared<std::string>();
  CLI::App* explain = command->add_subcommand("explain", "All about one key");
  explain->add_option("key", *key, "For example optimizer.lr")->required();
  explain->callback([key, &invocation] {
    invocation.action = [key] { return print(api::config_explain(*key), "", false); };
  });
  CLI::App* schema = command->add_subcommand("schema", "A JSON Schema of train.toml, for editors");
  schema->callback(
      [&invocation] { invocation.action = [] { return print(api::config_schema(), "", false); }; });
}

}  // namespace tandem::tool
