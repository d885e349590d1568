// tandem doctor
#include "tandem/tandem.h"
#include "tools/command.h"

namespace tandem::tool {

void add_doctor(CLI::App& app, Invocation& invocation) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what this machine offers: devices, instruction sets, measured rates");
  command->add_flag("--json", invocation.json, "One JSON object on standard output");
  on_choice(*command, invocation, [&invocation] { return print(api::doctor(), invocation); });
}

}  // namespace tandem::tool
