// Paths that callers of the public library give.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include "engine/graph/error.h"

namespace tandem::api {

/// Absolute and without dots. Throws Error{usage} for an empty one, and Error{runtime} where the
/// current folder is gone.
inline std::string absolute_path(const std::string& path) {
  Diagnostic d;
  if (path.empty()) {
    d.message = "a path is empty";
    throw Error(ErrorKind::usage, std::move(d));
  }
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (!error) return absolute.lexically_normal().string();
  d.file = path;
  d.message = "the current folder cannot be found: " + error.message();
  d.fix = "give an absolute path";
  throw Error(ErrorKind::runtime, std::move(d));
}

}  // namespace tandem::api
