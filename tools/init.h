// The subcommand `tandem init`.
#pragma once

#include "tools/command.h"

namespace tandem::tool {

void add_init(CLI::App& app, Invocation& invocation);

}  // namespace tandem::tool
