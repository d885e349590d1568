#include "engine/formats/text_stream.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/graph/error.h"

namespace tandem {
namespace {

/// A descriptor of its own, so that closing it leaves the process's one open.
std::FILE* open_standard_input() {
  const int copy = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  return copy < 0 ? nullptr : fdopen(copy, "rb");
}

/// What a file is whose first bytes no text has; "" for what may be one.
std::string_view other_format(std::string_view bytes) {
  using namespace std::string_view_literals;
  constexpr std::pair<std::string_view, std::string_view> known[] = {
      {"\xfd"
       "7zXZ\0"sv,
       "an xz file"},
      {"\x28\xb5\x2f\xfd"sv, "a Zstandard file"},
      {"BZh91AY&SY"sv, "a bzip2 file"},
      {"PK\x03\x04"sv, "a zip archive"},
      {"\x04\x22\x4d\x18"sv, "an LZ4 file"},
      {"PAR1\x15"sv, "a Parquet file"},
      {"\xff\xfe"sv, "text in UTF-16"},
      {"\xfe\xff"sv, "text in UTF-16"}};
  for (const auto& [start, format] : known) {
    if (bytes.starts_with(start)) return format;
  }
  return "";
}

}  // namespace

std::string shown_path(const std::string& path) { return path == "-" ? "<stdin>" : path; }

struct TextStream::Impl {
  std::string path;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{nullptr, std::fclose};
  std::vector<std::uint8_t> input = std::vector<std::uint8_t>(std::size_t{1} << 18);
  std::size_t at = 0, filled = 0;
  std::uint64_t loaded = 0;  // bytes of the file that came into `input`
  bool packed = false, between_members = false, padded = false;
  z_stream stream{};

  ~Impl() {
    if (packed) inflateEnd(&stream);
  }
  /// False at the end of the file.
  bool load() {
    at = 0;
    filled = std::fread(input.data(), 1, input.size(), file.get());
    loaded += filled;
    if (filled == 0 && std::ferror(file.get()) != 0) {
      throw Error(
          ErrorKind::runtime,
          Diagnostic{.message = std::string("cannot read: ") + std::strerror(errno), .file = path});
    }
    return filled > 0;
  }
  [[noreturn]] void broken(const std::string& why) const {
    throw Error(ErrorKind::data,
                Diagnostic{.message = "broken gzip data at byte " +
                                      std::to_string(loaded - filled + at) + ": " + why,
                           .file = path});
  }
  std::size_t unpack(char* to, std::size_t bytes);
};

TextStream::TextStream(const std::string& path, std::uint64_t from)
    : impl_(std::make_unique<Impl>()) {
  Impl& my = *impl_;
  my.path = shown_path(path);
  my.file.reset(path == "-" ? open_standard_input() : std::fopen(path.c_str(), "rbe"));
  if (!my.file) {
    throw Error(ErrorKind::runtime,
                Diagnostic{.message = std::string("cannot open: ") + std::strerror(errno),
                           .file = my.path});
  }
  std::setvbuf(my.file.get(), nullptr, _IONBF, 0);
  if (from > 0) {
    my.loaded = from;
    if (::fseeko(my.file.get(), static_cast<off_t>(from), SEEK_SET) == 0) return;
    throw Error(ErrorKind::runtime,
                Diagnostic{.message = std::string("cannot read: ") + std::strerror(errno),
                           .file = my.path});
  }
  my.load();
  const bool marked = my.filled >= 2 && my.input[0] == 0x1f && my.input[1] == 0x8b;
  const auto* start = reinterpret_cast<const char*>(my.input.data());
  const std::string_view format = other_format({start, my.filled});
  if (!format.empty()) {
    throw Error(ErrorKind::data, Diagnostic{.message = "this is " + std::string(format),
                                            .file = my.path,
                                            .expected = "text in UTF-8, plain or gzipped",
                                            .fix = "convert it first"});
  }
  if (!marked && path.ends_with(".gz")) {
    throw Error(ErrorKind::data, Diagnostic{.message = "this is no gzip file",
                                            .file = my.path,
                                            .fix = "a file of plain text has a name without .gz"});
  }
  if (!marked) return;
  if (inflateInit2(&my.stream, 15 + 16) != Z_OK) throw std::bad_alloc();
  my.packed = true;
}

TextStream::~TextStream() = default;

std::size_t TextStream::Impl::unpack(char* to, std::size_t bytes) {
  stream.next_out = reinterpret_cast<Bytef*>(to);
  stream.avail_out = static_cast<uInt>(bytes);
  while (stream.avail_out == bytes) {
    if (at == filled && !load()) {
      if (!between_members) broken("the file ends too early");
      return 0;
    }
    if (between_members) {  // gzip files may be joined; zeros behind the last one are padding
      padded = padded || input[at] == 0;
      while (padded && at < filled && input[at] == 0) ++at;
      if (at == filled) continue;
      if (padded) broken("there is more behind the zeros that pad the data");
      inflateReset(&stream);
      between_members = false;
    }
    stream.next_in = input.data() + at;
    stream.avail_in = static_cast<uInt>(filled - at);
    const int result = inflate(&stream, Z_NO_FLUSH);
    at = filled - stream.avail_in;
    if (result == Z_STREAM_END) {
      between_members = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      broken(stream.msg ? stream.msg : "unreadable");
    }
  }
  return bytes - stream.avail_out;
}

std::size_t TextStream::read(char* to, std::size_t bytes) {
  Impl& my = *impl_;
  bytes = std::min(bytes, std::size_t{1} << 30);  // zlib counts in 32 bits
  if (bytes == 0) return 0;
  if (my.packed) return my.unpack(to, bytes);
  if (my.at == my.filled && !my.load()) return 0;
  const std::size_t count = std::min(bytes, my.filled - my.at);
  std::memcpy(to, my.input.data() + my.at, count);
  my.at += count;
  return count;
}

std::uint64_t TextStream::taken() const { return impl_->loaded - impl_->filled + impl_->at; }

bool TextStream::packed() const { return impl_->packed; }

}  // namespace tandem
