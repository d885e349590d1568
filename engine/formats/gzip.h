// Reading of gzip files and of zlib's raw deflate, in pieces; raw deflate of zip archives.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/formats/byte_stream.h"

namespace tandem {

/// The most bytes to which that many bytes of deflate unpack: 258 bytes need at least two bits.
std::uint64_t most_unpacked(std::uint64_t packed);

/// Raw deflate data in a range of a file. Throws Error{data} with the file and the offset where it
/// is broken or cut.
class InflatedRange final : public ByteStream {
 public:
  InflatedRange(const InputFile& file, std::uint64_t offset, std::uint64_t bytes,
                std::string member);
  ~InflatedRange() override;
  std::size_t read(void* to, std::size_t bytes) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A file's bytes from its start, unpacked where it starts as a gzip file does (several members
/// too; zeros after the last one are left out). Throws Error{data} with file and offset where that
/// is broken. The file has to outlive it.
class UnpackedFile final : public ByteStream {
 public:
  explicit UnpackedFile(const InputFile& file);
  ~UnpackedFile() override;
  std::size_t read(void* to, std::size_t bytes) override;
  bool packed() const;
  /// An upper limit of the bytes that come; for a plain file their number.
  std::uint64_t most() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::vector<std::uint8_t> deflate_raw(const std::uint8_t* from, std::size_t bytes);
std::uint32_t crc32_of(const void* data, std::size_t bytes, std::uint32_t start = 0);

}  // namespace tandem
