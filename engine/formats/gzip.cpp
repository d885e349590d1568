#include "engine/formats/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "engine/graph/error.h"

namespace tandem {
namespace {

// zlib counts in 32 bits.
constexpr std::size_t piece = std::size_t{1} << 30;
// Unpacked at a time: it is still in a cache when the caller looks at it.
constexpr std::size_t unpacked_piece = std::size_t{1} << 20;

constexpr std::size_t input_bytes = std::size_t{1} << 18;

/// Inflates a range of a file that is read in pieces.
struct Inflater {
  Inflater(const InputFile& source, std::uint64_t offset, std::uint64_t bytes, int window_bits,
           std::string name)
      : file(source), at(offset), end(offset + bytes), member(std::move(name)), input(input_bytes) {
    if (inflateInit2(&stream, window_bits) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// False at the end of the range.
  bool load() {
    if (stream.avail_in > 0) return true;
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(end - at, input.size()));
    const std::size_t got = file.read_at(at, input.data(), wanted);
    at += got;
    stream.next_in = input.data();
    stream.avail_in = static_cast<uInt>(got);
    return got > 0;
  }
  /// Where in the file the next byte to be unpacked is.
  std::uint64_t position() const { return at - stream.avail_in; }

  [[noreturn]] void broken(const char* what, const std::string& why) const {
    throw Error(ErrorKind::data, {.message = std::string("broken ") + what + " at byte " +
                                             std::to_string(position()) + ": " + why,
                                  .file = file.path(),
                                  .path = member});
  }

  /// Returns some bytes; none only where `over` has become true, at the end of the data.
  std::size_t inflate_some(void* to, std::size_t bytes, bool& over, const char* what) {
    bytes = std::min(bytes, unpacked_piece);
    stream.next_out = static_cast<Bytef*>(to);
    stream.avail_out = static_cast<uInt>(bytes);
    while (stream.avail_out == bytes && !over) {
      const bool more = load();
      const int result = inflate(&stream, Z_NO_FLUSH);
      over = result == Z_STREAM_END;
      const bool stuck = stream.avail_out == bytes && !over;
      if (result != Z_OK && result != Z_BUF_ERROR && !over)
        broken(what, stream.msg ? stream.msg : "unreadable");
      if (stuck && !more) broken(what, "the file ends too early");
    }
    return bytes - stream.avail_out;
  }

  const InputFile& file;
  std::uint64_t at, end;  // the range that has yet to be loaded
  std::string member;
  std::vector<std::uint8_t> input;
  z_stream stream{};
};

}  // namespace

std::uint64_t most_unpacked(std::uint64_t packed) {
  constexpr std::uint64_t ratio = 1032;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(packed, ratio, &bytes)) return std::uint64_t{1} << 63;
  return bytes;
}

struct InflatedRange::Impl {
  Inflater inflater;
  bool over = false;
};

InflatedRange::InflatedRange(const InputFile& file, std::uint64_t offset, std::uint64_t bytes,
                             std::string member)
    : impl_(new Impl{{file, offset, bytes, -15, std::move(member)}}) {}
InflatedRange::~InflatedRange() = default;

std::size_t InflatedRange::read(void* to, std::size_t bytes) {
  if (impl_->over || bytes == 0) return 0;
  return impl_->inflater.inflate_some(to, bytes, impl_->over, "compressed data");
}

struct UnpackedFile::Impl {
  std::uint64_t size;
  std::unique_ptr<FileRange> plain;  // either this or `inflater`
  std::unique_ptr<Inflater> inflater;
  bool between_members = false;

  /// Goes to the next member; false where only zeros follow, which are padding.
  bool next_member() const {
    z_stream& z = inflater->stream;
    bool padded = false;
    while (inflater->load()) {
      while (z.avail_in > 0 && *z.next_in == 0) {
        padded = true;
        ++z.next_in, --z.avail_in;
      }
      if (z.avail_in == 0) continue;
      if (padded) inflater->broken("gzip data", "there is more data after the zeros that pad it");
      inflateReset(&z);
      return true;
    }
    return false;
  }
};

UnpackedFile::UnpackedFile(const InputFile& file) : impl_(new Impl{file.size(), {}, {}}) {
  std::uint8_t start[2] = {0, 0};
  if (file.read_at(0, start, 2) == 2 && start[0] == 0x1f && start[1] == 0x8b) {
    impl_->inflater = std::make_unique<Inflater>(file, 0, file.size(), 15 + 16, "");
  } else {
    impl_->plain = std::make_unique<FileRange>(file, 0, file.size());
  }
}
UnpackedFile::~UnpackedFile() = default;

bool UnpackedFile::packed() const { return impl_->inflater != nullptr; }
std::uint64_t UnpackedFile::most() const {
  return packed() ? most_unpacked(impl_->size) : impl_->size;
}

std::size_t UnpackedFile::read(void* to, std::size_t bytes) {
  Impl& my = *impl_;
  if (my.plain) return my.plain->read(to, bytes);
  while (bytes > 0) {
    if (my.between_members && !my.next_member()) return 0;
    my.between_members = false;
    const std::size_t got = my.inflater->inflate_some(to, bytes, my.between_members, "gzip data");
    if (got > 0) return got;
  }
  return 0;
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
