// tandem report RUN… --to report.html: writes curves of runs as a page.
#include <memory>

#include "api/program/runs.h"
#include "tools/command.h"

namespace tandem::tool {

void add_report(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::vector<std::string> runs;
    std::string to;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "report",
      "A page of a run's curves, memory, times and placement; several runs in the same charts");
  command->add_option("runs", options->runs, "Run directories")->required();
  command->add_option("--to", options->to, "The page: one .html file that needs nothing else")
      ->type_name("FILE")
      ->required();
  command->add_flag("--json", invocation.json, "One JSON object on standard output");
  command->footer(
      "Also for runs that have not ended. Times by operator are those of train --log-operators, or "
      "of\n"
      "  tandem bench RUN/train.resolved.toml --json > RUN/bench.json\n"
      "Examples:\n"
      "  tandem report runs/digits-0001 --to report.html\n"
      "  tandem report runs/digits-000* --to compared.html");
  on_choice(*command, invocation, [options, &invocation] {
    return print(api::write_report(options->runs, options->to), invocation);
  });
}

}  // namespace tandem::tool
