// Files that a user names as output of a command: nothing else is overwritten by a slip of the pen.
#pragma once

#include <string>
#include <string_view>

namespace tandem::api {

/// Writes `content` at once or not at all. Links and permissions stay; into devices and pipes it is
/// written, they are not replaced. Throws Error{usage}, with `option` as the place, where the path
/// is a folder, or a file that does not contain `mark` and so is no older output of this kind; an
/// empty mark refuses every file that is there.
void write_output(const std::string& path, std::string_view content, std::string_view option,
                  std::string_view mark);

/// Throws what `write_output` would throw; for commands that need minutes for the content.
void check_output(const std::string& path, std::string_view option, std::string_view mark);

/// Replaces a file that is there, at once or not at all; links and permissions stay.
void rewrite_file(const std::string& path, std::string_view content);

}  // namespace tandem::api
