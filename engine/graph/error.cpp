#include "engine/graph/error.h"

#include <utility>

namespace tandem {
namespace {

/// A NUL would end the text of `what()`.
std::string without_nul(std::string text) {
  for (std::size_t at = 0; (at = text.find('\0', at)) != std::string::npos;)
    text.replace(at, 1, "\\0");
  return text;
}

}  // namespace

std::string v1::to_string(const Diagnostic& d) {
  std::string text;
  if (!d.file.empty()) {
    text += d.file;
    if (d.line > 0) text += ":" + std::to_string(d.line);
    if (d.column > 0) text += ":" + std::to_string(d.column);
    text += ": ";
  }
  if (!d.path.empty()) text += d.path + ": ";
  text += d.message;
  if (!d.expected.empty()) text += ": expected " + d.expected;
  if (!d.got.empty()) text += (d.expected.empty() ? ": got " : ", got ") + d.got;
  if (!d.fix.empty()) text += " (" + d.fix + ")";
  return without_nul(std::move(text));
}

Error::Error(ErrorKind kind, Diagnostic diagnostic)
    : Error(kind, std::vector<Diagnostic>{std::move(diagnostic)}) {}

Error::Error(ErrorKind kind, std::vector<Diagnostic> diagnostics)
    : kind_(kind), diagnostics_(std::move(diagnostics)) {
  for (const Diagnostic& d : diagnostics_) {
    if (!text_.empty()) text_ += "\n";
    text_ += to_string(d);
  }
}

}  // namespace tandem
