// tandem config keys | explain KEY | schema, for train.toml or (--policy) for policy.toml
#include <memory>

#include "api/program/keys.h"
#include "tandem/tandem.h"
#include "tools/command.h"

namespace tandem::tool {

void add_config(CLI::App& app, Invocation& invocation) {
  CLI::App* command =
      app.add_subcommand("config", "Explain the keys of train.toml and of policy.toml");
  command->require_subcommand(1);
  auto policy = std::make_shared<bool>(false);
  const auto add = [&](const char* name, const char* help) {
    CLI::App* sub = command->add_subcommand(name, help);
    sub->add_flag("--policy", *policy, "The keys of policy.toml");
    return sub;
  };
  CLI::App* keys = add("keys", "All keys with type, default and meaning");
  keys->add_flag("--json", invocation.json, "One JSON object on standard output");
  on_choice(*keys, invocation, [policy, &invocation] {
    return print(api::config_keys(false, *policy), api::config_keys(true, *policy),
                 invocation.json);
  });
  auto key = std::make_shared<std::string>();
  CLI::App* explain = add("explain", "All about one key");
  explain->add_option("key", *key, "For example optimizer.lr")->required();
  on_choice(*explain, invocation,
            [key, policy] { return print(api::config_explain(*key, *policy), "", false); });
  CLI::App* schema = add("schema", "A JSON Schema of the file, for editors");
  auto folder = std::make_shared<std::string>();
  schema
      ->add_option("--install", *folder,
                   "Write the schemas of both files into FOLDER/.tandem instead, where their first "
                   "lines name them")
      ->type_name("FOLDER");
  schema->add_flag("--json", invocation.json, "With --install: one JSON object");
  on_choice(*schema, invocation, [folder, policy, &invocation] {
    if (folder->empty()) return print(api::config_schema(*policy), "", false);
    return print(api::config_install_schemas(*folder), invocation);
  });
}

}  // namespace tandem::tool
