// tandem runs [FOLDER]: lists the runs in a folder.
#include <memory>

#include "api/program/runs.h"
#include "tools/command.h"

namespace tandem::tool {

void add_runs(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "runs", "List runs with their models, steps, best numbers and states, the newest first");
  const auto folder = std::make_shared<std::string>();
  command->add_option("folder", *folder,
                      "A folder with run directories, or one that has them in runs/ (default: the "
                      "current one)");
  command->add_flag("--json", invocation.json, "One JSON object on standard output");
  command->footer(
      "States: running, finished, diverged (numbers are not finite), stopped (interrupted, killed "
      "or failed).\n"
      "Examples:\n"
      "  tandem runs\n"
      "  tandem runs models/digits --json");
  on_choice(*command, invocation, [folder, &invocation] {
    const api::Report report = api::list_runs(*folder);
    print_warnings(report.warnings);
    return print(report, invocation);
  });
}

}  // namespace tandem::tool
