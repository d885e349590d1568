// Packed files for tests: gzip, and zip archives with any numbers in their headers.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/formats/gzip.h"

namespace tandem::testing {

inline std::string deflated(const std::string& content) {
  const auto packed =
      deflate_raw(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
  return {packed.begin(), packed.end()};
}

/// Raw deflate of `start`, then of `repeats` times `block`, in as many bytes as the block takes
/// each time: no more than one block is ever in memory.
inline std::string deflated_repeats(const std::string& start, const std::string& block,
                                    std::size_t repeats) {
  const auto piece = [](const std::string& content) {
    z_stream z{};
    deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
    std::string packed(deflateBound(&z, content.size()) + 64, '\0');
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    z.avail_in = static_cast<uInt>(content.size());
    z.next_out = reinterpret_cast<Bytef*>(packed.data());
    z.avail_out = static_cast<uInt>(packed.size());
    deflate(&z, Z_FULL_FLUSH);
    packed.resize(packed.size() - z.avail_out);
    deflateEnd(&z);
    return packed;
  };
  std::string all = start.empty() ? "" : piece(start);
  const std::string packed = piece(block);
  for (std::size_t i = 0; i < repeats; ++i) all += packed;
  return all + std::string("\x03\x00", 2);  // the last block, an empty one
}

inline std::uint32_t crc_of_repeats(const std::string& start, const std::string& block,
                                    std::size_t repeats) {
  uLong crc = crc32_of(start.data(), start.size());
  const uLong each = crc32_of(block.data(), block.size());
  for (std::size_t i = 0; i < repeats; ++i)
    crc = crc32_combine(crc, each, static_cast<z_off_t>(block.size()));
  return static_cast<std::uint32_t>(crc);
}

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::string gzip_file(const std::string& packed, std::uint32_t crc, std::uint64_t bytes) {
  std::string file("\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
  file += packed;
  put(file, crc);
  put(file, static_cast<std::uint32_t>(bytes));
  return file;
}
inline std::string gzipped(const std::string& content) {
  return gzip_file(deflated(content), crc32_of(content.data(), content.size()), content.size());
}

struct ZipMember {
  std::string name;
  std::string content;  // as it stands in the archive
  std::uint64_t bytes;  // unpacked, as the directory says
  std::uint32_t crc = 0;
  std::uint16_t method = 8;
};

inline ZipMember stored(const std::string& name, const std::string& content) {
  return {name, content, content.size(), crc32_of(content.data(), content.size()), 0};
}
inline ZipMember packed(const std::string& name, const std::string& content) {
  return {name, deflated(content), content.size(), crc32_of(content.data(), content.size()), 8};
}

inline std::string zip_archive(const std::vector<ZipMember>& members) {
  std::string file, directory;
  for (const ZipMember& m : members) {
    const auto local = static_cast<std::uint32_t>(file.size());
    const auto common = [&](std::string& to) {
      put<std::uint16_t>(to, 20);
      put<std::uint16_t>(to, 0);
      put<std::uint16_t>(to, m.method);
      put<std::uint32_t>(to, 0);  // time and date
      put<std::uint32_t>(to, m.crc);
      put<std::uint32_t>(to, static_cast<std::uint32_t>(m.content.size()));
      put<std::uint32_t>(to, static_cast<std::uint32_t>(m.bytes));
      put<std::uint16_t>(to, static_cast<std::uint16_t>(m.name.size()));
      put<std::uint16_t>(to, 0);
    };
    put<std::uint32_t>(file, 0x04034b50);
    common(file);
    file += m.name + m.content;
    put<std::uint32_t>(directory, 0x02014b50);
    put<std::uint16_t>(directory, 20);
    common(directory);
    directory.append(10, '\0');
    put<std::uint32_t>(directory, local);
    directory += m.name;
  }
  const auto at = static_cast<std::uint32_t>(file.size());
  file += directory;
  put<std::uint32_t>(file, 0x06054b50);
  put<std::uint32_t>(file, 0);
  put<std::uint16_t>(file, static_cast<std::uint16_t>(members.size()));
  put<std::uint16_t>(file, static_cast<std::uint16_t>(members.size()));
  put<std::uint32_t>(file, static_cast<std::uint32_t>(directory.size()));
  put<std::uint32_t>(file, at);
  put<std::uint16_t>(file, 0);
  return file;
}

/// A .npy file's first bytes.
inline std::string npy_start(std::string dictionary) {
  dictionary.resize((10 + dictionary.size() + 1 + 63) / 64 * 64 - 11, ' ');
  dictionary += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  put(text, static_cast<std::uint16_t>(dictionary.size()));
  return text + dictionary;
}
inline std::string npy_start(const std::string& descr, const std::string& shape) {
  return npy_start("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }");
}

/// A member of 2 GiB of zeros in 2 MiB.
inline ZipMember bomb(const std::string& name) {
  constexpr std::size_t repeats = 2048;
  const std::string start = npy_start("<f4", "(536870912,)"), block(std::size_t{1} << 20, '\0');
  return {name, deflated_repeats(start, block, repeats), start.size() + repeats * block.size(),
          crc_of_repeats(start, block, repeats)};
}

}  // namespace tandem::testing
