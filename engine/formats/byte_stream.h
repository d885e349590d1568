// Streams of bytes, and the files that they come from. Files are read in pieces: a reader holds
// only what it keeps, never the whole file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tandem {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// The next bytes, `bytes` at most; 0 at the end only. Throws Error with the file.
  virtual std::size_t read(void* to, std::size_t bytes) = 0;
};
/// Reads as many bytes as there are, `bytes` at most.
std::size_t read_fully(ByteStream& from, void* to, std::size_t bytes);

/// A regular file that is read at any place. Error{runtime} where it cannot be opened or read.
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Fewer than `bytes` at the end of the file only.
  std::size_t read_at(std::uint64_t offset, void* to, std::size_t bytes) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// `bytes` bytes of a file from `offset` on, as they are. The file has to outlive it.
class FileRange final : public ByteStream {
 public:
  FileRange(const InputFile& file, std::uint64_t offset, std::uint64_t bytes)
      : file_(file), at_(offset), left_(bytes) {}
  std::size_t read(void* to, std::size_t bytes) override;

 private:
  const InputFile& file_;
  std::uint64_t at_, left_;
};

}  // namespace tandem
