#include "engine/formats/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "engine/formats/exchange_paths.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

std::atomic<std::uint64_t> operations{0};
std::mutex hook_mutex;
std::shared_ptr<const FileHook> hook;  // guarded by hook_mutex

[[noreturn]] void fail_file(std::string_view doing, const std::string& path, int error) {
  Diagnostic d{.message = "cannot " + std::string(doing) + ": " + std::strerror(error),
               .file = path};
  if (error == ENOSPC || error == EDQUOT) d.fix = "make room on that disk";
  if (error == EFBIG) d.fix = "raise the limit of a file's size (ulimit -f)";
  throw Error(ErrorKind::runtime, std::move(d));
}

void before(std::string_view operation, std::string_view path) {
  static const std::uint64_t kill_at = [] {
    const char* text = std::getenv("TANDEM_KILL_AT_FILE_OPERATION");
    return text ? std::strtoull(text, nullptr, 10) : 0;
  }();
  const std::uint64_t number = ++operations;
  if (kill_at != 0 && number == kill_at) ::kill(::getpid(), SIGKILL);
  std::shared_ptr<const FileHook> call;
  {
    std::lock_guard lock(hook_mutex);
    call = hook;
  }
  if (call) (*call)(operation, path);
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, std::string_view doing)
      : value_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (value_ < 0) fail_file(doing, path, errno);
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

/// The status of an open file, which must be a regular one: others might never end, or wait for a
/// writer for ever.
struct stat regular_status(const Descriptor& file, const std::string& path) {
  struct stat status;
  if (::fstat(file.value(), &status) != 0) fail_file("read", path, errno);
  if (S_ISDIR(status.st_mode)) fail_file("read", path, EISDIR);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::data, {.message = "this is not a regular file",
                                  .file = path,
                                  .fix = "store what it gives in one first"});
  }
  return status;
}

struct stat status_of(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) fail_file("read", path, errno);
  return status;
}

}  // namespace

void set_file_hook(FileHook new_hook) {
  std::lock_guard lock(hook_mutex);
  hook = new_hook ? std::make_shared<const FileHook>(std::move(new_hook)) : nullptr;
}

std::uint64_t file_operations() { return operations; }

OutputFile::OutputFile(std::string path, Mode mode) : path_(std::move(path)) {
  const bool appends = mode == Mode::append;
  before(appends ? "append" : "create", path_);
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (appends ? O_APPEND : O_TRUNC);
  descriptor_ = ::open(path_.c_str(), flags, 0666);
  if (descriptor_ < 0) fail_file("create", path_, errno);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::write(const void* data, std::size_t bytes) {
  assert(descriptor_ >= 0);
  if (bytes == 0) return;
  before("write", path_);
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_, from, std::min<std::size_t>(bytes, 1 << 30));
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_file("write", path_, errno);
    }
    from += written;
    bytes -= static_cast<std::size_t>(written);
    bytes_ += static_cast<std::uint64_t>(written);
  }
}

void OutputFile::sync() {
  assert(descriptor_ >= 0);
  before("sync", path_);
  if (::fsync(descriptor_) != 0) fail_file("sync", path_, errno);
}

void OutputFile::close() {
  assert(descriptor_ >= 0);
  before("close", path_);
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0 && errno != EINTR) fail_file("close", path_, errno);
}

WrittenFile write_file(const std::string& path, std::string_view content) {
  OutputFile file(path);
  file.write(content);
  file.sync();
  file.close();
  return {content.size(), sha256(content.data(), content.size())};
}

namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

void replace_file(const std::string& path, std::string_view content) {
  const std::string beside = path + ".new";
  write_file(beside, content);
  rename_path(beside, path);
  sync_directory(folder_of(path));
}

void make_directories(const std::string& path) {
  if (path.empty() || is_directory(path)) return;
  const std::string parent = folder_of(path);
  if (parent != path) make_directories(parent);
  before("make_directory", path);
  if (::mkdir(path.c_str(), 0777) != 0) {
    const int error = errno;
    if (is_directory(path)) return;  // another process has made it
    if (error == EEXIST) {
      throw Error(ErrorKind::runtime,
                  {.message = "cannot create folder: a file or link has this name", .file = path});
    }
    fail_file("create folder", path, error);
  }
}

void make_directory(const std::string& path) {
  before("make_directory", path);
  if (::mkdir(path.c_str(), 0777) != 0) fail_file("create folder", path, errno);
}

void rename_path(const std::string& from, const std::string& to) {
  before("rename", to);
  if (std::rename(from.c_str(), to.c_str()) != 0)
    fail_file("rename " + from + " to this", to, errno);
}

bool exchange_paths(const std::string& one, const std::string& other) {
  before("exchange", other);
  if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0)
    return true;
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) return false;
  fail_file("exchange " + one + " with this", other, errno);
}

void sync_directory(const std::string& path) {
  before("sync_directory", path);
  const Descriptor folder(path, O_RDONLY | O_DIRECTORY, "open folder");
  // Some network file systems cannot sync folders and say so with EINVAL.
  if (::fsync(folder.value()) != 0 && errno != EINVAL) fail_file("sync folder", path, errno);
}

void remove_all(const std::string& path) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return;
    fail_file("remove", path, errno);
  }
  const bool folder = S_ISDIR(status.st_mode);
  if (folder) {
    for (const std::string& name : list_directory(path)) remove_all(path + "/" + name);
  }
  before("remove", path);
  if ((folder ? ::rmdir(path.c_str()) : ::unlink(path.c_str())) != 0)
    fail_file("remove", path, errno);
}

void truncate_file(const std::string& path, std::uint64_t bytes) {
  before("truncate", path);
  const Descriptor file(path, O_WRONLY, "open");
  if (::ftruncate(file.value(), static_cast<off_t>(bytes)) != 0) fail_file("shorten", path, errno);
  if (::fsync(file.value()) != 0) fail_file("sync", path, errno);
}

bool path_exists(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0;
}

bool is_directory(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::uint64_t file_size(const std::string& path) {
  return static_cast<std::uint64_t>(status_of(path).st_size);
}

std::vector<std::string> list_directory(const std::string& path) {
  DIR* folder = ::opendir(path.c_str());
  if (!folder) fail_file("list folder", path, errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int error = errno;
  ::closedir(folder);
  if (error != 0) fail_file("list folder", path, error);
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_file(const std::string& path, std::uint64_t limit) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK, "open");
  const struct stat status = regular_status(file, path);
  std::string content;
  content.reserve(std::min<std::uint64_t>(static_cast<std::uint64_t>(status.st_size), limit) + 1);
  while (true) {  // the size is only a hint: those of the system's own files are 0
    const std::size_t had = content.size();
    content.resize(std::max(content.capacity(), had + 65536));
    const ssize_t got = ::read(file.value(), content.data() + had, content.size() - had);
    if (got < 0 && errno != EINTR) fail_file("read", path, errno);
    content.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (content.size() > limit) {
      throw Error(ErrorKind::data, {.message = "the file is too large",
                                    .file = path,
                                    .expected = "at most " + std::to_string(limit) + " bytes"});
    }
    if (got == 0) return content;
  }
}

WrittenFile hash_file(const std::string& path) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK, "open");
  regular_status(file, path);
  std::vector<std::uint8_t> buffer(1 << 20);
  Sha256 hash;
  WrittenFile result;
  while (true) {
    const ssize_t got = ::read(file.value(), buffer.data(), buffer.size());
    if (got < 0) {
      if (errno == EINTR) continue;
      fail_file("read", path, errno);
    }
    if (got == 0) break;
    hash.update(buffer.data(), static_cast<std::size_t>(got));
    result.bytes += static_cast<std::uint64_t>(got);
  }
  result.sha256 = hash.finish();
  return result;
}

MappedFile::MappedFile(const std::string& path, bool read_only) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK, "open");
  const struct stat status = regular_status(file, path);
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  const int access = read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  void* at = ::mmap(nullptr, size_, access, MAP_PRIVATE, file.value(), 0);
  if (at == MAP_FAILED) fail_file("map", path, errno);
  data_ = static_cast<std::uint8_t*>(at);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
}

}  // namespace tandem
