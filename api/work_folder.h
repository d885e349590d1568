// A folder for what a command needs while it works, in TMPDIR.
#pragma once

#include <string>

#include "engine/graph/error.h"

namespace tandem::api {

/// Goes away with this object, and all in it.
class WorkFolder {
 public:
  /// `purpose`: "the encoded rows", for messages. Throws Error{runtime} where none can be made.
  explicit WorkFolder(const std::string& purpose);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::string& path() const { return path_; }

  /// What f returns, which writes to the folder: failures say how to have it elsewhere.
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
