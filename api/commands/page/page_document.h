// The document that a browser gets: all of its styles and scripts are in it.
#pragma once

#include <string>
#include <string_view>

namespace tandem::api {

/// Joined from web/ when the program is built.
extern const std::string_view page_document;

/// Its Content-Security-Policy: only this very style and this very script, and requests to the
/// server that it came from.
std::string content_security_policy(std::string_view document);

}  // namespace tandem::api
