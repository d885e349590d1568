// What a pass outside of training has reported of its ids and labels, as an error.
#pragma once

#include <string>

#include "engine/runtime/program.h"

namespace tandem {

/// Throws Error{data} where the program has reported an id or a label; `where` ends the message.
void refuse_reported(Program& program, const std::string& where = "");

}  // namespace tandem
