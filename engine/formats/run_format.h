// The number of the format of a run's files.
#pragma once

#include <cstdint>

#include "engine/formats/json_file.h"

namespace tandem {

/// Checkpoints and started.json contain it. Raised where a file gets another form or meaning.
constexpr std::uint64_t run_format = 2;

/// Throws Error{usage} where the file is of another format, an Error of the file's kind where it
/// says none.
void expect_run_format(const JsonItem& root);

}  // namespace tandem
