// A place in a file that the user wrote, for messages.
#pragma once

#include <string>
#include <utility>

#include "engine/graph/error.h"

namespace tandem {

/// Where a value was written; for messages only, so positions never make two configurations differ.
struct Where {
  std::string file;  // or "command line"
  int line = 0;
  int column = 0;
  bool operator==(const Where&) const { return true; }
};

/// A diagnostic at a place.
inline Diagnostic at(const Where& where, std::string path, std::string message,
                     std::string expected = "", std::string got = "", std::string fix = "") {
  return {.message = std::move(message),
          .file = where.file,
          .line = where.line,
          .column = where.column,
          .path = std::move(path),
          .expected = std::move(expected),
          .got = std::move(got),
          .fix = std::move(fix)};
}

}  // namespace tandem
