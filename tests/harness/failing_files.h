// Lets file operations fail one after the other, to check what a command leaves on disk.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "engine/formats/files.h"
#include "engine/graph/error.h"

namespace tandem::testing {

/// The files in a folder with their contents.
inline std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const std::string& name : list_directory(folder))
    files[name] = read_file(folder + "/" + name);
  return files;
}

/// Repeats `action` with the first, second, third … operation on a file failing, until none fails
/// any more; after each failure `folder` must hold what it held before. Operations that only
/// delete, or that follow the first rename, do not fail. Returns how many failed.
inline int expect_nothing_left(const std::string& folder, const std::function<void()>& action) {
  const std::map<std::string, std::string> before = files_in(folder);
  int failed = 0;
  for (bool fails = true; fails && failed < 1000;) {
    int left = failed + 1;
    fails = false;
    bool renamed = false;
    set_file_hook([&](std::string_view operation, std::string_view) {
      if (renamed || operation == "remove" || --left != 0) {
        renamed = renamed || operation == "rename";
        return;
      }
      fails = true;
      throw Error(ErrorKind::runtime, Diagnostic{.message = "no such luck"});
    });
    try {
      action();
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "no such luck");
    }
    set_file_hook({});
    if (!fails) break;
    ++failed;
    EXPECT_EQ(files_in(folder), before) << "failure " << failed;
  }
  return failed;
}

}  // namespace tandem::testing
