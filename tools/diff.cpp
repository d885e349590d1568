// tandem diff RUN RUN: differences between two runs.
#include <memory>

#include "api/program/runs.h"
#include "tools/command.h"

namespace tandem::tool {

void add_diff(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string a, b;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("diff", "What two runs differ in: keys of the configuration, results");
  command->add_option("a", options->a, "A run directory")->required();
  command->add_option("b", options->b, "Another one")->required();
  command->add_flag("--json", invocation.json, "One JSON object on standard output");
  command->footer("Example: tandem diff runs/digits-0001 runs/digits-0002");
  on_choice(*command, invocation, [options, &invocation] {
    return print(api::compare_runs(options->a, options->b), invocation);
  });
}

}  // namespace tandem::tool
