// A text file read in pieces, unpacked on the way where it is a gzip file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tandem {

/// How messages name a file: "-" is standard input.
std::string shown_path(const std::string& path);

class TextStream {
 public:
  /// "-" reads standard input. Error{runtime} where the file cannot be opened; Error{data} where
  /// its name ends in `.gz` but it is no gzip file, and where it has another known format. Reads
  /// from byte `from` on, which only plain text allows.
  explicit TextStream(const std::string& path, std::uint64_t from = 0);
  ~TextStream();
  TextStream(TextStream&&) noexcept;
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  /// The next bytes, `bytes` at most; 0 at the end only. Error{data} with the offset where the
  /// packed data is broken or cut.
  std::size_t read(char* to, std::size_t bytes);
  /// Bytes of the file up to here, packed ones where it is packed.
  std::uint64_t taken() const;
  bool packed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem
