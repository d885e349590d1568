#include "api/work_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

namespace tandem::api {
namespace {
namespace fs = std::filesystem;
}

WorkFolder::WorkFolder(const std::string& purpose)
    : fix_("name another folder for " + purpose + ": TMPDIR=FOLDER tandem ...") {
  const char* named = ::getenv("TMPDIR");
  const std::string parent = named != nullptr && *named != '\0' ? named : "/tmp";
  path_ = (fs::path(parent) / "tandem-XXXXXX").string();
  if (mkdtemp(path_.data()) != nullptr) return;
  throw Error(
      ErrorKind::runtime,
      Diagnostic{.message = "cannot make a folder for " + purpose + ": " + std::strerror(errno),
                 .file = "TMPDIR",
                 .expected = "a folder that can be written to, with room for them",
                 .got = parent,
                 .fix = fix_});
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Error WorkFolder::with_other_folder(const Error& error) const {
  std::vector<Diagnostic> problems = error.diagnostics();
  for (Diagnostic& d : problems) {
    if (d.file.starts_with(path_)) d.fix += (d.fix.empty() ? "" : ", or ") + fix_;
  }
  return {error.kind(), std::move(problems)};
}

}  // namespace tandem::api
