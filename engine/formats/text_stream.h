// A text file read in pieces, unpacked on the way where it is a gzip file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tandem {

class TextStream {
 public:
  /// Error{runtime} where the file cannot be opened; Error{data} where its name ends in `.gz` and
  /// it is none.
  explicit TextStream(const std::string& path);
  ~TextStream();
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;

  /// The next bytes, `bytes` at most; 0 at the end only. Error{data} with the offset where the
  /// packed data is broken or cut.
  std::size_t read(char* to, std::size_t bytes);
  /// Bytes of the file taken so far, packed ones where it is packed.
  std::uint64_t taken() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem
