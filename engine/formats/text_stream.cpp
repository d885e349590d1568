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

struct OtherFormat {
  std::string_view start, name, remedy;
};

constexpr std::string_view unpack_it = "unpack it, or pack it with gzip, which is read as it is";
constexpr std::string_view save_as_text = "open it and save it as CSV (UTF-8)";

/// A column may be called PAR1, or ORC.
bool is_name(std::string_view start) {
  return std::all_of(start.begin(), start.end(),
                     [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); });
}

bool may_be_text(std::string_view bytes) {
  const std::string_view first = bytes.substr(0, std::size_t{1} << 12);
  return std::none_of(first.begin(), first.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < ' ' && c != '\t' && c != '\r' && c != '\n') || byte == 0xff;
  });
}

/// The format of a file that cannot be text by its first bytes; null where it may be text.
const OtherFormat* other_format(std::string_view bytes) {
  using namespace std::string_view_literals;
  static constexpr OtherFormat known[] = {
      {"\xfd"
       "7zXZ\0"sv,
       "an xz file", unpack_it},
      {"\x28\xb5\x2f\xfd"sv, "a Zstandard file", unpack_it},
      {"BZh91AY&SY"sv, "a bzip2 file", unpack_it},
      {"\x04\x22\x4d\x18"sv, "an LZ4 file", unpack_it},
      {"PAR1"sv, "a Parquet file",
       "convert it: pandas.read_parquet(\"x.parquet\").to_csv(\"x.csv\", index=False)"},
      {"ARROW1"sv, "an Arrow file (Feather)",
       "convert it: pandas.read_feather(\"x.feather\").to_csv(\"x.csv\", index=False)"},
      {"FEA1"sv, "a Feather file",
       "convert it: pandas.read_feather(\"x.feather\").to_csv(\"x.csv\", index=False)"},
      {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv, "an Excel workbook (.xls)", save_as_text},
      {"\x89HDF\r\n"sv, "an HDF5 file",
       "convert it: pandas.read_hdf(\"x.h5\").to_csv(\"x.csv\", index=False), or write arrays as "
       ".npz"},
      {"SQLite format 3\0"sv, "an SQLite database", "export the table as CSV"},
      {"\x93NUMPY"sv, "a NumPy array", "data.kind = \"npz\""},
      {"ORC"sv, "an ORC file", "convert it to CSV"},
      {"Obj\x01"sv, "an Avro file", "convert it to CSV"},
      {"\xff\xfe"sv, "text in UTF-16",
       "convert it: iconv -f UTF-16 -t UTF-8 x.csv > y.csv (Excel: save it as CSV UTF-8)"},
      {"\xfe\xff"sv, "text in UTF-16",
       "convert it: iconv -f UTF-16 -t UTF-8 x.csv > y.csv (Excel: save it as CSV UTF-8)"}};
  for (const OtherFormat& format : known) {
    if (!bytes.starts_with(format.start)) continue;
    if (!(is_name(format.start) && may_be_text(bytes))) return &format;
  }
  static constexpr OtherFormat workbook{"", "an Excel workbook (.xlsx)", save_as_text};
  static constexpr OtherFormat arrays{"", "an .npz archive", "data.kind = \"npz\""};
  static constexpr OtherFormat archive{"", "a zip archive", unpack_it};
  if (!bytes.starts_with("PK\x03\x04"sv)) return nullptr;
  const std::string_view first = bytes.substr(0, std::size_t{1} << 16);
  if (first.find("[Content_Types].xml") != first.npos || first.find("xl/") != first.npos)
    return &workbook;
  constexpr std::size_t name_at = 30;
  const std::size_t length =
      bytes.size() < name_at
          ? 0
          : static_cast<unsigned char>(bytes[26]) + 256u * static_cast<unsigned char>(bytes[27]);
  return bytes.size() >= name_at + length && bytes.substr(name_at, length).ends_with(".npy")
             ? &arrays
             : &archive;
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
  if (const OtherFormat* const format = other_format({start, my.filled})) {
    throw Error(ErrorKind::data, Diagnostic{.message = "this is " + std::string(format->name),
                                            .file = my.path,
                                            .expected = "text in UTF-8, plain or gzipped",
                                            .fix = std::string(format->remedy)});
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
TextStream::TextStream(TextStream&&) noexcept = default;

std::size_t TextStream::Impl::unpack(char* to, std::size_t bytes) {
  stream.next_out = reinterpret_cast<Bytef*>(to);
  stream.avail_out = static_cast<uInt>(bytes);
  while (stream.avail_out == bytes) {
    if (at == filled && !load()) {
      if (!between_members) broken("the file ends too early");
      return 0;
    }
    if (between_members) {  // gzip files may be joined; zeros after the last one are padding
      padded = padded || input[at] == 0;
      while (padded && at < filled && input[at] == 0) ++at;
      if (at == filled) continue;
      if (padded) broken("there is more data after the zeros that pad it");
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
