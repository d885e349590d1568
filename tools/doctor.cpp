// tandem doctor
#include <memory>

#include "api/program/machine.h"
#include "tandem/tandem.h"
#include "tools/command.h"

namespace tandem::tool {

void add_doctor(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what this machine offers: devices, instruction sets, measured rates");
  command->add_flag("--json", invocation.json, "One JSON object on standard output");
  const auto ranks = std::make_shared<bool>(false);
  command->add_flag("--ranks", *ranks, "Measure the network between the processes of a launcher");
  command->footer(
      "Examples:\n"
      "  tandem doctor\n"
      "  tandem launch -n 4 -- doctor --ranks");
  on_choice(*command, invocation, [ranks, &invocation] {
    const api::Report report = api::doctor(*ranks);
    return report.rank > 0 ? 0 : print(report, invocation);
  });
}

}  // namespace tandem::tool
