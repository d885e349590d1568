// How the page's requests are refused: a status, a word for programs, and text for people.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tandem/error.h"

namespace tandem::api {

using PageJson = nlohmann::ordered_json;

struct PageError {
  int status = 500;
  std::string code, message;
  std::vector<Diagnostic> diagnostics = {};
  PageJson more = nullptr;  // further members of the answer
};

/// `{"error": {status, code, message, diagnostics}}`.
PageJson error_json(const PageError& error);
/// A mistake in a policy, a selector or a file as the answer 422.
PageError refused_by(const Error& error);
/// One line, without spaces; bytes that are no UTF-8 become U+FFFD.
std::string page_text(const PageJson& json);

}  // namespace tandem::api
