// Text as terminals and their shells take it.
#pragma once

#include <string>
#include <string_view>

namespace tandem::api {

/// Line breaks and tabs stay. Other control characters, characters that change the direction of
/// writing, and bytes that are no UTF-8 become \xNN, so that names and cells of data cannot steer a
/// terminal.
std::string for_terminal(std::string_view text);

/// The text as one word of a command line, in single quotes where a shell would change it
/// otherwise.
std::string for_shell(std::string_view text);

}  // namespace tandem::api
