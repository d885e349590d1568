// The file layer: every file that Tandem writes goes through these calls, so that tests can stop
// the process before any one of them. Failures are Error{runtime} with the path and the system's
// reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/sha256.h"

namespace tandem {

/// Called before each operation that changes the file system: "create", "append", "write", "sync",
/// "close", "rename", "make_directory", "sync_directory", "remove", "truncate". Process-wide, for
/// tests; an empty function switches it off. TANDEM_KILL_AT_FILE_OPERATION=N (1-based) makes the
/// process kill itself with SIGKILL before its N-th operation.
using FileHook = std::function<void(std::string_view operation, std::string_view path)>;
void set_file_hook(FileHook hook);
/// Operations so far in this process.
std::uint64_t file_operations();

/// A file being written. The destructor closes without syncing and never throws.
class OutputFile {
 public:
  enum class Mode { create, append };  // create: empties a file that is there
  explicit OutputFile(std::string path, Mode mode = Mode::create);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(const void* data, std::size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Writes to the disk, not only to the system.
  void sync();
  void close();

  const std::string& path() const { return path_; }
  /// Bytes written through this object.
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

/// What a manifest records of a file.
struct WrittenFile {
  std::uint64_t bytes = 0;
  std::string sha256;  // 64 hexadecimal digits
};

/// Creates, writes, syncs and closes. The folder is not synced and nothing is renamed.
WrittenFile write_file(const std::string& path, std::string_view content);
/// Writes `path` + ".new", syncs, renames it over `path`, syncs the folder: a reader sees the old
/// or the new content, whole.
void replace_file(const std::string& path, std::string_view content);

/// Makes a folder with its parents; an existing one is fine.
void make_directories(const std::string& path);
/// Makes a folder; throws if it exists.
void make_directory(const std::string& path);
void rename_path(const std::string& from, const std::string& to);
/// Makes creations, renames and removals in a folder durable.
void sync_directory(const std::string& path);
/// Removes a file, or a folder with all in it; a missing path is fine.
void remove_all(const std::string& path);
/// Cuts a file to its first `bytes` bytes and syncs it.
void truncate_file(const std::string& path, std::uint64_t bytes);

bool path_exists(const std::string& path);
bool is_directory(const std::string& path);
std::uint64_t file_size(const std::string& path);
/// Names (not paths) in a folder, sorted, without "." and "..".
std::vector<std::string> list_directory(const std::string& path);
/// The whole file; refuses files above `limit` bytes.
std::string read_file(const std::string& path, std::uint64_t limit = std::uint64_t{1} << 40);
/// Size and hash of a file that is there.
WrittenFile hash_file(const std::string& path);

/// A file in memory, private to the process: writes to `data` never reach the file. Read only, it
/// asks the system for no memory of its own.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path, bool read_only = false);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::uint8_t* data() const { return data_; }  // null for an empty file
  std::size_t size() const { return size_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tandem
