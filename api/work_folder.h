// A temporary folder in TMPDIR for what a command needs while it works.
#pragma once

#include <string>

#include "engine/graph/error.h"

namespace tandem::api {

/// The folder and everything in it are deleted with this object.
class WorkFolder {
 public:
  /// `purpose`: "the encoded rows", for messages. Throws Error{runtime} where none can be made.
  explicit WorkFolder(const std::string& purpose);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::string& path() const { return path_; }

  /// Returns what `f` returns. `f` writes to the folder; an error of `f` is extended by how to
  /// choose another folder.
  template <class F>
  auto written_by(F f) const {
    try {
      return f();
    } catch (const Error& error) {
      throw with_other_folder(error);
    }
  }

 private:
  Error with_other_folder(const Error& error) const;

  std::string fix_, path_;
};

}  // namespace tandem::api
