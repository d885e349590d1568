// Handles file errors that come as a signal instead of an error code, whose default action ends the
// process without a message.
#pragma once

namespace tandem::tool {

/// Where a mapped file is truncated, or its disk cannot be read, the process ends with a message
/// that names the file and with the exit code of bad data. Writing above the limit of `ulimit -f`
/// fails as on a full disk.
void report_failing_files();

}  // namespace tandem::tool
