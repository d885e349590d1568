#include "engine/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "engine/formats/files.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

// zlib counts in 32 bits.
constexpr std::size_t piece = std::size_t{1} << 30;

struct Inflater {
  z_stream stream{};
  explicit Inflater(int window_bits) {
    if (inflateInit2(&stream, window_bits) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

}  // namespace

std::vector<std::uint8_t> read_maybe_gzip(const std::string& path, std::uint64_t limit) {
  const MappedFile file(path);
  const std::uint8_t* from = file.data();
  const bool packed = file.size() >= 2 && from[0] == 0x1f && from[1] == 0x8b;
  const auto fail = [&](std::string message, std::string expected = "") {
    throw Error(ErrorKind::data,
                {.message = std::move(message), .file = path, .expected = std::move(expected)});
  };
  const std::string too_large = "at most " + std::to_string(limit) + " bytes";
  if (!packed) {
    if (file.size() > limit) fail("the file is too large", too_large);
    return {from, from + file.size()};
  }

  Inflater inflater(15 + 16);
  z_stream& z = inflater.stream;
  std::vector<std::uint8_t> to;
  std::size_t taken = 0, made = 0;
  while (true) {
    if (made == to.size()) {
      if (made >= limit) fail("unpacks to too much", too_large);
      to.resize(std::min<std::uint64_t>(limit, std::max(to.size() * 2, file.size() * 4 + 4096)));
    }
    const std::size_t in = std::min(file.size() - taken, piece);
    const std::size_t out = std::min(to.size() - made, piece);
    z.next_in = const_cast<std::uint8_t*>(from) + taken;
    z.avail_in = static_cast<uInt>(in);
    z.next_out = to.data() + made;
    z.avail_out = static_cast<uInt>(out);
    const int result = inflate(&z, Z_NO_FLUSH);
    taken += in - z.avail_in;
    made += out - z.avail_out;
    if (result == Z_STREAM_END) {
      // Gzip files may be joined; zeros behind the last one are padding, as of gzip(1).
      if (std::all_of(from + taken, from + file.size(), [](auto byte) { return byte == 0; })) break;
      inflateReset(&z);
      continue;
    }
    if (result == Z_OK && (z.avail_out == 0 || taken < file.size())) continue;
    if (result == Z_BUF_ERROR && z.avail_out == 0) continue;
    const bool cut = result == Z_OK || result == Z_BUF_ERROR;
    fail("broken gzip data at byte " + std::to_string(taken) + ": " +
         (cut     ? "the file ends too early"
          : z.msg ? z.msg
                  : "unreadable"));
  }
  to.resize(made);
  return to;
}

bool inflate_raw(const std::uint8_t* from, std::size_t from_bytes, std::uint8_t* to,
                 std::size_t to_bytes) {
  Inflater inflater(-15);
  z_stream& z = inflater.stream;
  std::size_t taken = 0, made = 0;
  std::uint8_t beyond = 0;  // an end marker may still follow the last byte
  while (true) {
    const std::size_t in = std::min(from_bytes - taken, piece);
    const std::size_t out = std::min(to_bytes - made, piece);
    z.next_in = const_cast<std::uint8_t*>(from) + taken;
    z.avail_in = static_cast<uInt>(in);
    z.next_out = out > 0 ? to + made : &beyond;
    z.avail_out = static_cast<uInt>(std::max<std::size_t>(out, 1));
    const std::size_t room = z.avail_out;
    const int result = inflate(&z, Z_NO_FLUSH);
    taken += in - z.avail_in;
    const std::size_t got = room - z.avail_out;
    if (out == 0 && got > 0) return false;  // longer than declared
    made += got;
    if (result == Z_STREAM_END) return made == to_bytes;
    if (result != Z_OK || (got == 0 && in == z.avail_in)) return false;
  }
}

std::vector<std::uint8_t> deflate_raw(const std::uint8_t* from, std::size_t bytes) {
  z_stream z{};
  if (deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> guard(&z, deflateEnd);
  std::vector<std::uint8_t> to(bytes / 2 + 1024);
  std::size_t taken = 0, made = 0;
  while (true) {
    const std::size_t in = std::min(bytes - taken, piece);
    if (made == to.size()) to.resize(to.size() * 2);
    const std::size_t out = std::min(to.size() - made, piece);
    z.next_in = const_cast<std::uint8_t*>(from) + taken;
    z.avail_in = static_cast<uInt>(in);
    z.next_out = to.data() + made;
    z.avail_out = static_cast<uInt>(out);
    const int result = deflate(&z, taken + in == bytes ? Z_FINISH : Z_NO_FLUSH);
    taken += in - z.avail_in;
    made += out - z.avail_out;
    if (result == Z_STREAM_END) break;
  }
  to.resize(made);
  return to;
}

std::uint32_t crc32_of(const void* data, std::size_t bytes, std::uint32_t start) {
  if (bytes == 0) return start;  // zlib takes a null pointer for "begin"
  return static_cast<std::uint32_t>(crc32_z(start, static_cast<const Bytef*>(data), bytes));
}

}  // namespace tandem
