// Writing of .npz archives.

#include "engine/formats/arrays/npy.h"
#include "engine/formats/arrays/npy_array.h"
#include "engine/formats/gzip.h"
#include "engine/formats/zip_format.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path) : file_(path) {}

  void add(const std::string& name, std::uint16_t method, std::uint32_t crc, std::uint64_t bytes,
           const std::vector<std::span<const std::uint8_t>>& pieces) {
    std::uint64_t packed = 0;
    for (const auto& piece : pieces) packed += piece.size();
    const std::uint64_t local = offset_;
    std::string head;
    put<std::uint32_t>(head, local_signature);
    put_common(head, method, crc, in_zip64, in_zip64, name, 20);
    head += name;
    put<std::uint16_t>(head, 1);  // zip64 always: readers know it, and sizes need no second form
    put<std::uint16_t>(head, 16);
    put<std::uint64_t>(head, bytes);
    put<std::uint64_t>(head, packed);
    write(head.data(), head.size());
    for (const auto& piece : pieces) write(piece.data(), piece.size());

    put<std::uint32_t>(directory_, central_signature);
    put<std::uint16_t>(directory_, 45);
    put_common(directory_, method, crc, in_zip64, in_zip64, name, 28);
    put<std::uint16_t>(directory_, 0);  // comment
    put<std::uint16_t>(directory_, 0);  // disk
    put<std::uint16_t>(directory_, 0);  // attributes
    put<std::uint32_t>(directory_, 0);
    put<std::uint32_t>(directory_, in_zip64);
    directory_ += name;
    put<std::uint16_t>(directory_, 1);
    put<std::uint16_t>(directory_, 24);
    put<std::uint64_t>(directory_, bytes);
    put<std::uint64_t>(directory_, packed);
    put<std::uint64_t>(directory_, local);
    ++entries_;
  }

  WrittenFile finish() {
    const std::uint64_t start = offset_, size = directory_.size();
    std::string end = std::move(directory_);
    put<std::uint32_t>(end, end64_signature);
    put<std::uint64_t>(end, 44);
    put<std::uint16_t>(end, 45);
    put<std::uint16_t>(end, 45);
    put<std::uint32_t>(end, 0);
    put<std::uint32_t>(end, 0);
    put<std::uint64_t>(end, entries_);
    put<std::uint64_t>(end, entries_);
    put<std::uint64_t>(end, size);
    put<std::uint64_t>(end, start);
    put<std::uint32_t>(end, locator_signature);
    put<std::uint32_t>(end, 0);
    put<std::uint64_t>(end, start + size);
    put<std::uint32_t>(end, 1);
    put<std::uint32_t>(end, end_signature);
    put<std::uint32_t>(end, 0);
    put<std::uint16_t>(end, 0xffff);
    put<std::uint16_t>(end, 0xffff);
    put<std::uint32_t>(end, in_zip64);
    put<std::uint32_t>(end, in_zip64);
    put<std::uint16_t>(end, 0);
    write(end.data(), end.size());
    file_.sync();
    file_.close();
    return {file_.bytes(), hash_.finish()};
  }

 private:
  template <class T>
  static void put(std::string& to, T value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  // The fields that a local header and a directory entry share, from "version needed" to "extra".
  static void put_common(std::string& to, std::uint16_t method, std::uint32_t crc,
                         std::uint32_t packed, std::uint32_t bytes, const std::string& name,
                         std::uint16_t extra) {
    put<std::uint16_t>(to, 45);
    put<std::uint16_t>(to, 1 << 11);  // names are UTF-8
    put<std::uint16_t>(to, method);
    put<std::uint16_t>(to, 0);             // time
    put<std::uint16_t>(to, (1 << 5) | 1);  // 1980-01-01: equal tensors give equal files
    put<std::uint32_t>(to, crc);
    put<std::uint32_t>(to, packed);
    put<std::uint32_t>(to, bytes);
    put<std::uint16_t>(to, static_cast<std::uint16_t>(name.size()));
    put<std::uint16_t>(to, extra);
  }
  void write(const void* data, std::size_t bytes) {
    hash_.update(data, bytes);
    file_.write(data, bytes);
    offset_ += bytes;
  }

  OutputFile file_;
  Sha256 hash_;
  std::uint64_t offset_ = 0, entries_ = 0;
  std::string directory_;
};

}  // namespace

WrittenFile write_npz(const std::string& path, const std::vector<NamedTensor>& tensors,
                      bool compress) {
  ZipWriter zip(path);
  for (const auto& [name, tensor] : tensors) {
    if (name.size() > 60000) {
      throw Error(ErrorKind::usage, {.message = "a tensor's name is too long", .file = path});
    }
    const std::string header = npy_header(tensor.type());
    const std::span head(reinterpret_cast<const std::uint8_t*>(header.data()), header.size());
    const std::span data(static_cast<const std::uint8_t*>(tensor.data()), tensor.bytes());
    const std::uint32_t crc =
        crc32_of(data.data(), data.size(), crc32_of(head.data(), head.size()));
    const std::uint64_t bytes = head.size() + data.size();
    if (!compress) {
      zip.add(name + ".npy", 0, crc, bytes, {head, data});
      continue;
    }
    std::vector<std::uint8_t> whole(head.begin(), head.end());
    whole.insert(whole.end(), data.begin(), data.end());
    const std::vector<std::uint8_t> packed = deflate_raw(whole.data(), whole.size());
    zip.add(name + ".npy", 8, crc, bytes, {packed});
  }
  return zip.finish();
}

}  // namespace tandem
