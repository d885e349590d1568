// The zip side of .npz: reading of stored and deflated members, zip64 included, and writing.
#include <cstring>
#include <limits>

#include "engine/formats/gzip.h"
#include "engine/formats/npy.h"
#include "engine/formats/npy_array.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50, central_signature = 0x02014b50,
                        end_signature = 0x06054b50, end64_signature = 0x06064b50,
                        locator_signature = 0x07064b50;
constexpr std::uint32_t in_zip64 = 0xffffffff;

class Archive {
 public:
  explicit Archive(const std::string& path) : path_(path), file_(path) {}

  std::vector<NamedTensor> read() const {
    std::uint64_t entries = 0, at = 0;
    find_directory(entries, at);
    std::vector<NamedTensor> tensors;
    for (std::uint64_t i = 0; i < entries; ++i) tensors.push_back(member(at));
    return tensors;
  }

 private:
  [[noreturn]] void fail(std::string message, std::uint64_t offset, std::string name = "") const {
    throw Error(ErrorKind::data,
                {.message = std::move(message) + " (at byte " + std::to_string(offset) + ")",
                 .file = path_,
                 .path = std::move(name)});
  }

  template <class T>
  T get(std::uint64_t offset) const {
    if (offset > file_.size() || file_.size() - offset < sizeof(T)) {
      fail("the archive is cut off", offset);
    }
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof(T));
    return value;
  }

  void find_directory(std::uint64_t& entries, std::uint64_t& at) const {
    const std::uint64_t size = file_.size();
    const std::uint64_t lowest = size > 22 + 65535 ? size - 22 - 65535 : 0;
    if (size < 22 || get<std::uint16_t>(0) != 0x4b50) fail("not a .npz (zip) archive", 0);
    std::uint64_t end = size - 22;
    while (get<std::uint32_t>(end) != end_signature) {
      if (end-- == lowest) fail("not a .npz archive, or cut off: it has no directory", size);
    }
    entries = get<std::uint16_t>(end + 10);
    at = get<std::uint32_t>(end + 16);
    if (end >= 20 && get<std::uint32_t>(end - 20) == locator_signature) {
      const auto end64 = get<std::uint64_t>(end - 20 + 8);
      if (get<std::uint32_t>(end64) != end64_signature) fail("broken zip64 directory", end64);
      entries = get<std::uint64_t>(end64 + 32);
      at = get<std::uint64_t>(end64 + 48);
    }
    if (entries > size / 46) fail("the archive's directory is broken", end);
  }

  // The member that the directory's entry at `at` describes; moves `at` to the next entry.
  NamedTensor member(std::uint64_t& at) const {
    if (get<std::uint32_t>(at) != central_signature) fail("broken directory of the archive", at);
    const auto flags = get<std::uint16_t>(at + 8), method = get<std::uint16_t>(at + 10);
    const auto crc = get<std::uint32_t>(at + 16);
    std::uint64_t packed = get<std::uint32_t>(at + 20), bytes = get<std::uint32_t>(at + 24);
    std::uint64_t local = get<std::uint32_t>(at + 42);
    const std::uint64_t name_bytes = get<std::uint16_t>(at + 28),
                        extra_bytes = get<std::uint16_t>(at + 30),
                        comment_bytes = get<std::uint16_t>(at + 32);
    const std::uint64_t extra = at + 46 + name_bytes, next = extra + extra_bytes + comment_bytes;
    if (next > file_.size()) fail("the archive is cut off", at);
    std::string name(reinterpret_cast<const char*>(file_.data()) + at + 46, name_bytes);
    for (std::uint64_t e = extra; e + 4 <= extra + extra_bytes;) {
      const auto id = get<std::uint16_t>(e), length = get<std::uint16_t>(e + 2);
      std::uint64_t value = e + 4;
      if (id == 1) {  // zip64: the fields that did not fit, in this order
        for (std::uint64_t* field : {&bytes, &packed, &local}) {
          if (*field != in_zip64) continue;
          if (value + 8 > e + 4 + length) fail("broken zip64 entry", e, name);
          *field = get<std::uint64_t>(value);
          value += 8;
        }
      }
      e += 4 + std::uint64_t{length};
    }
    if (flags & 1) fail("the archive is encrypted", at, name);
    at = next;

    if (get<std::uint32_t>(local) != local_signature) fail("broken archive entry", local, name);
    const std::uint64_t data =
        local + 30 + get<std::uint16_t>(local + 26) + get<std::uint16_t>(local + 28);
    if (data > file_.size() || packed > file_.size() - data) {
      fail("the archive is cut off", local, name);
    }
    const std::uint8_t* from = file_.data() + data;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (method == 0) {
      if (packed != bytes) fail("broken archive entry", local, name);
      check(crc, from, bytes, local, name);
      return {name, parse_npy(from, bytes, path_, name)};
    }
    if (method != 8) fail("compressed in an unknown way", local, name);
    // Deflate never shrinks data below 1/1032.
    if (bytes > packed * 1040 + 64)
      fail("broken archive entry: its size is impossible", local, name);
    std::vector<std::uint8_t> unpacked(bytes);
    if (!inflate_raw(from, packed, unpacked.data(), bytes)) {
      fail("broken compressed data", data, name);
    }
    check(crc, unpacked.data(), bytes, local, name);
    return {name, parse_npy(unpacked.data(), bytes, path_, name)};
  }

  void check(std::uint32_t crc, const std::uint8_t* data, std::uint64_t bytes, std::uint64_t at,
             const std::string& name) const {
    if (crc32_of(data, bytes) != crc) fail("damaged: the checksum does not fit", at, name);
  }

  const std::string& path_;
  MappedFile file_;
};

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

std::vector<NamedTensor> read_npz(const std::string& path) { return Archive(path).read(); }

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
