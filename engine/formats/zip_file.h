// A zip archive: its directory, and its members as streams of bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/formats/byte_stream.h"

namespace tandem {

/// What messages call an archive and its members, and what the names of members lose.
struct ZipWords {
  std::string archive = ".zip";  // "not a .zip archive"
  std::string member = "file";   // "the archive has this file twice"
  std::string ending = "";       // ".npy": left out of the members' names
};

/// The archive's directory, read and checked. Zip64 is read; encryption and split archives are not.
/// Error{data} with file, member and offset.
class ZipFile {
 public:
  struct Entry {
    std::uint16_t flags = 0, method = 0;  // method 0: stored, 8: deflated
    std::uint32_t crc = 0;
    std::uint64_t packed = 0, bytes = 0, local = 0;  // local: where its own header is
  };

  /// Throws where the directory is broken or names a member twice.
  explicit ZipFile(const std::string& path, ZipWords words = {});

  const std::string& path() const { return file_.path(); }
  const InputFile& file() const { return file_; }
  /// In the archive's order.
  const std::vector<std::string>& names() const { return names_; }
  bool has(const std::string& name) const { return entries_.contains(name); }
  const Entry& entry(const std::string& name) const { return entries_.at(name); }

  /// Where the packed bytes of a member begin; all of them lie in the file, and the unpacked ones
  /// can be as many as the directory says.
  std::uint64_t data_offset(const std::string& name) const;
  [[noreturn]] void fail(std::string message, std::uint64_t offset, std::string name = "") const;

 private:
  template <class T>
  T get(std::uint64_t offset) const;
  void find_directory(std::uint64_t& entries, std::uint64_t& at) const;
  std::uint64_t add_entry(std::uint64_t at);

  InputFile file_;
  ZipWords words_;
  std::vector<std::string> names_;
  std::map<std::string, Entry> entries_;
};

/// The unpacked bytes of a member. Archive and name have to outlive it.
class ZipStream final : public ByteStream {
 public:
  ZipStream(const ZipFile& archive, const std::string& name);

  /// Unpacked bytes, as the directory says.
  std::uint64_t size() const { return entry_.bytes; }
  std::size_t read(void* to, std::size_t bytes) override;
  /// Throws where more bytes follow, or the checksum of those that were read does not fit.
  void expect_end();

 private:
  const ZipFile& archive_;
  const std::string& name_;
  const ZipFile::Entry& entry_;
  std::unique_ptr<ByteStream> bytes_;
  std::uint32_t crc_ = 0;
};

}  // namespace tandem
