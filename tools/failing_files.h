// Files that fail without an error code: the system sends a signal, whose default action is to end
// the process without a word.
#pragma once

namespace tandem::tool {

/// A file that is cut while it is mapped into memory, or whose disk cannot be read then, ends the
/// process with a message that names it and the exit code of bad data. Writing above the limit of
/// `ulimit -f` fails as on a full disk.
void report_failing_files();

}  // namespace tandem::tool
