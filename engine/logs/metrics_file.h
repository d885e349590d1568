// metrics.jsonl, read back: by formats that are made of it, and by what compares runs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/graph/structures/function_ref.h"
#include "engine/logs/metrics_log.h"

namespace tandem {

/// A line with its values in their order; "nan", "inf" and "-inf" are numbers. Nothing where it is
/// torn, or has no step.
std::optional<LoggedLine> logged_line(std::string_view text);

/// Calls `take` for each line of the file in turn; lines without content are skipped. Returns the
/// number of those. A file that is not there has no lines.
std::size_t read_metrics_file(const std::string& path, FunctionRef<void(LoggedLine&&)> take);

}  // namespace tandem
