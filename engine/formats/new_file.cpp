#include "engine/formats/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "engine/formats/files.h"
#include "engine/formats/paths.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::size_t random_count = 8;

std::string random_letters() {
  std::random_device random;
  std::uniform_int_distribution<std::size_t> index(0, letters.size() - 1);
  std::string text;
  for (std::size_t i = 0; i < random_count; ++i) text += letters[index(random)];
  return text;
}

}  // namespace

std::string link_target(const std::string& path) {
  std::error_code error;
  fs::path target = absolute_path(path);
  for (int links = 0; links < 40 && fs::is_symlink(fs::symlink_status(target, error)); ++links) {
    const fs::path next = fs::read_symlink(target, error);
    if (error) break;
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target.string();
}

std::string unused_name(const std::string& path) {
  std::string name;
  struct stat status;
  do {
    name = path + "." + random_letters();
  } while (::lstat(name.c_str(), &status) == 0);
  return name;
}

bool is_unused_name(const std::string& name, const std::string& path) {
  if (name.size() != path.size() + 1 + random_count || !name.starts_with(path + ".")) return false;
  return name.find_first_not_of(letters, path.size() + 1) == std::string::npos;
}

NewFile::NewFile(const std::string& path, std::string_view option)
    : option_(option), target_(link_target(path)) {
  come_after(path);
}

void NewFile::come_after(const std::string& file) {
  const std::string target = link_target(file);
  struct stat status;
  if (::stat(target.c_str(), &status) != 0) {
    if (errno == ELOOP) refuse("this link leads to itself", "a file to write", file);
    return;
  }
  replaces_ = true;
  mode_ = status.st_mode & 0777;
  owner_ = status.st_uid;
  group_ = status.st_gid;
  // A superuser may write to any file; one without any write permission is protected all the same.
  const bool writable =
      (mode_ & 0222) != 0 && ::faccessat(AT_FDCWD, target.c_str(), W_OK, AT_EACCESS) == 0;
  if (!writable)
    refuse("this file must not be written to", "a file with write permission, or a new name", file);
}

void NewFile::refuse(std::string message, std::string expected, const std::string& got) const {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .file = option_,
                                           .expected = std::move(expected),
                                           .got = got});
}

NewFile::~NewFile() {
  for (const std::string& path : made_) ::unlink(path.c_str());
}

std::string NewFile::make() {
  constexpr std::size_t longest_name = 200;  // file systems take 255 bytes
  const fs::path target(target_);
  const std::string name = target.filename().string().substr(0, longest_name);
  int error = EEXIST;
  for (int tries = 0; tries < 100 && (error == EEXIST || error == EINTR); ++tries) {
    const std::string path =
        (target.parent_path() / (name + "." + random_letters() + ".new")).string();
    const int descriptor =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaces_ ? 0600 : 0666);
    if (descriptor >= 0) {
      ::close(descriptor);
      made_.push_back(path);
      return path;
    }
    error = errno;
  }
  throw Error(ErrorKind::runtime,
              Diagnostic{.message = std::string("cannot make a file in the folder: ") +
                                    std::strerror(error),
                         .file = option_,
                         .got = target_,
                         .fix = error == ENOSPC || error == EDQUOT
                                    ? "make room on that disk"
                                    : "name a file in a folder that can be written to"});
}

/// Some file systems give all files one owner and mode, and refuse to change them.
void NewFile::take_permissions(const std::string& made) const {
  struct stat status;
  const bool is_there = ::stat(made.c_str(), &status) == 0;
  if (is_there && (status.st_uid != owner_ || status.st_gid != group_) &&
      ::chown(made.c_str(), owner_, group_) != 0) {
    // Only a superuser can give files away: the file belongs to the user who wrote it.
  }
  if (is_there && (status.st_mode & 0777) == mode_) return;
  if (::chmod(made.c_str(), mode_) == 0) return;
  throw Error(ErrorKind::runtime,
              Diagnostic{.message = std::string("cannot keep the permissions of the file: ") +
                                    std::strerror(errno),
                         .file = option_,
                         .got = target_,
                         .fix = "remove the file first"});
}

void NewFile::finish(const std::string& made) {
  if (replaces_) take_permissions(made);
  rename_path(made, target_);
  std::erase(made_, made);
}

void write_new_file(const std::string& path, std::string_view content, std::string_view option) {
  NewFile place(path, option);
  const std::string made = place.make();
  write_file(made, content);
  place.finish(made);
  sync_directory(fs::path(link_target(path)).parent_path().string());
}

}  // namespace tandem
