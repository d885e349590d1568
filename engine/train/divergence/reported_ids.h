// What a micro-batch has reported of its ids and labels, as an error.
#pragma once

#include <string_view>

#include "engine/runtime/program.h"

namespace tandem {

/// Throws Error{data} where a micro-batch of the program has reported an id or a label to `word`,
/// which is empty then; `where` ends the message.
void refuse_reported(const Program& program, ErrorWord& word, std::string_view where = "");

}  // namespace tandem
