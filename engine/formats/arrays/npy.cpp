#include "engine/formats/arrays/npy.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/formats/arrays/npy_array.h"
#include "engine/formats/claim.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

constexpr std::size_t npy_header_limit = 65536;

struct Failure {
  const std::string& file;
  const std::string& member;
  [[noreturn]] void operator()(std::string message, std::string expected = "", std::string got = "",
                               std::string fix = "") const {
    throw Error(ErrorKind::data, {.message = std::move(message),
                                  .file = file,
                                  .path = member,
                                  .expected = std::move(expected),
                                  .got = std::move(got),
                                  .fix = std::move(fix)});
  }
};

struct Dictionary {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
};

// The dictionary literal that NumPy writes: {'descr': '<f4', 'fortran_order': False, 'shape': (3,
// 2), }.
class DictionaryParser {
 public:
  DictionaryParser(std::string_view text, const Failure& fail) : text_(text), fail_(fail) {}

  Dictionary parse() {
    Dictionary header;
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        skip_space();
        if (at_ < text_.size() && text_[at_] == '[') fail_("structured arrays are not supported");
        header.descr = string(), has_descr = true;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean(), has_order = true;
      } else if (key == "shape") {
        header.shape = shape(), has_shape = true;
      } else {
        fail_("the header has an unknown key", "descr, fortran_order, shape", key);
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_descr || !has_order || !has_shape) fail_("the header lacks a key");
    return header;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(char wanted) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) {
      fail_("broken header at character " + std::to_string(at_), std::string(1, wanted));
    }
  }
  std::string string() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail_("broken header: a text does not end");
    std::string result(text_.substr(at_, end - at_));
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail_("broken header: fortran_order is neither True nor False");
  }
  Shape shape() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t extent = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0 || shape.size() == 64) {
        fail_("broken header: the shape is not a tuple of extents");
      }
      at_ += static_cast<std::size_t>(end - begin);
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
      shape.push_back(extent);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

  std::string_view text_;
  const Failure& fail_;
  std::size_t at_ = 0;
};

std::optional<DType> type_from_descr(std::string_view code) {
  constexpr std::pair<std::string_view, DType> codes[] = {
      {"f4", DType::float32}, {"f8", DType::float64}, {"f2", DType::float16},
      {"i1", DType::int8},    {"i2", DType::int16},   {"i4", DType::int32},
      {"i8", DType::int64},   {"u1", DType::uint8},   {"u2", DType::uint16},
      {"u4", DType::uint32},  {"u8", DType::uint64},  {"b1", DType::boolean}};
  for (const auto& [name, type] : codes) {
    if (name == code) return type;
  }
  return std::nullopt;
}

template <class Unsigned>
void swap_elements(void* data, std::int64_t count) {
  auto* at = static_cast<Unsigned*>(data);
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (sizeof(Unsigned) == 2) at[i] = __builtin_bswap16(at[i]);
    if constexpr (sizeof(Unsigned) == 4) at[i] = __builtin_bswap32(at[i]);
    if constexpr (sizeof(Unsigned) == 8) at[i] = __builtin_bswap64(at[i]);
  }
}

void swap_bytes(DType dtype, void* data, std::int64_t count) {
  switch (size_of(dtype)) {
    case 2:
      return swap_elements<std::uint16_t>(data, count);
    case 4:
      return swap_elements<std::uint32_t>(data, count);
    case 8:
      return swap_elements<std::uint64_t>(data, count);
    default:
      return;
  }
}

/// Where in a row-major array the elements of a column-major one go, one after the other.
class ColumnMajorPlaces {
 public:
  explicit ColumnMajorPlaces(Shape shape)
      : shape_(std::move(shape)), index_(shape_.size(), 0), stride_(shape_.size(), 1) {
    for (std::size_t axis = shape_.size() - 1; axis-- > 0;) {
      stride_[axis] = stride_[axis + 1] * shape_[axis + 1];
    }
  }
  template <class Element>
  void scatter(const void* from, std::int64_t count, void* to) {
    for (std::int64_t i = 0; i < count; ++i) {
      static_cast<Element*>(to)[offset_] = static_cast<const Element*>(from)[i];
      for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
        offset_ += stride_[axis];
        if (++index_[axis] < shape_[axis]) break;
        offset_ -= index_[axis] * stride_[axis];
        index_[axis] = 0;
      }
    }
  }

 private:
  const Shape shape_;
  std::vector<std::int64_t> index_, stride_;
  std::int64_t offset_ = 0;
};

void scatter(ColumnMajorPlaces& places, std::size_t size, const void* from, std::int64_t count,
             void* to) {
  switch (size) {
    case 1:
      return places.scatter<std::uint8_t>(from, count, to);
    case 2:
      return places.scatter<std::uint16_t>(from, count, to);
    case 4:
      return places.scatter<std::uint32_t>(from, count, to);
    default:
      return places.scatter<std::uint64_t>(from, count, to);
  }
}

}  // namespace

NpyHeader read_npy_header(ByteStream& from, std::uint64_t bytes, const std::string& file,
                          const std::string& member) {
  const Failure fail{file, member};
  std::uint8_t data[12];
  if (bytes < 10 || read_fully(from, data, 10) < 10 || std::memcmp(data, "\x93NUMPY", 6) != 0) {
    fail("not a .npy array");
  }
  const int major = data[6];
  if (major < 1 || major > 3) fail("unknown version of .npy", "1 to 3", std::to_string(major));
  const std::size_t start = major == 1 ? 10 : 12;
  if (read_fully(from, data + 10, start - 10) < start - 10) {
    fail("the array is cut off in its header");
  }
  std::size_t length = data[8] | std::size_t{data[9]} << 8;
  if (major > 1) length |= std::size_t{data[10]} << 16 | std::size_t{data[11]} << 24;
  if (length > npy_header_limit) {
    fail("the header is too long", "at most " + std::to_string(npy_header_limit) + " bytes",
         std::to_string(length));
  }
  std::string text(length, ' ');
  if (bytes < start + length || read_fully(from, text.data(), length) < length) {
    fail("the array is cut off in its header");
  }
  const Dictionary dictionary = DictionaryParser(text, fail).parse();

  std::string_view descr = dictionary.descr;
  if (descr.starts_with("|O") || descr.starts_with("O")) {
    fail("arrays of Python objects are not read", "numbers", dictionary.descr);
  }
  char order = '<';
  if (!descr.empty() && std::strchr("<>|=", descr[0]) != nullptr) {
    order = descr[0];
    descr.remove_prefix(1);
  }
  if (descr.starts_with('U') || descr.starts_with('S')) {
    fail("arrays of texts are not read", "numbers or booleans", dictionary.descr,
         "np.unique(x, return_inverse=True)[1] numbers the texts");
  }
  if (descr.starts_with('c')) {
    fail("arrays of complex numbers are not read", "numbers or booleans", dictionary.descr,
         "save x.real and x.imag");
  }
  const std::optional<DType> dtype = type_from_descr(descr);
  if (!dtype) fail("the element type is not supported", "numbers or booleans", dictionary.descr);
  const std::optional<std::uint64_t> wanted = bytes_of_array(*dtype, dictionary.shape);
  if (!wanted) fail("the shape is too large", "", to_string(dictionary.shape));
  const std::uint64_t there = bytes - start - length;
  if (*wanted != there) {
    fail(there < *wanted ? "the array is cut off" : "bytes follow the array",
         std::to_string(*wanted) + " bytes after offset " + std::to_string(start + length),
         std::to_string(there));
  }
  return {{*dtype, dictionary.shape},
          order == '>' && size_of(*dtype) > 1,
          dictionary.fortran_order && dictionary.shape.size() > 1};
}

HostTensor read_npy_elements(ByteStream& from, const NpyHeader& header, DType as,
                             const std::string& file, const std::string& member) {
  const DType dtype = header.type.dtype;
  const std::size_t size = size_of(dtype), size_here = size_of(as);
  const std::int64_t count = header.type.elements();
  HostTensor tensor(TensorType{as, header.type.shape});
  auto* to = static_cast<std::uint8_t*>(tensor.data());
  const bool in_place = as == dtype && !header.column_major;
  const std::int64_t at_a_time = std::min<std::int64_t>(
      count, static_cast<std::int64_t>(std::size_t{1} << 20) / static_cast<std::int64_t>(size));
  HostTensor piece;
  if (!in_place) piece = HostTensor(TensorType{dtype, {at_a_time}});
  ColumnMajorPlaces places(header.column_major ? header.type.shape : Shape{1});
  for (std::int64_t first = 0; first < count; first += at_a_time) {
    const std::int64_t here = std::min(at_a_time, count - first);
    void* read = in_place ? to + static_cast<std::size_t>(first) * size : piece.data();
    const std::size_t wanted = static_cast<std::size_t>(here) * size;
    if (const std::size_t got = read_fully(from, read, wanted); got < wanted) {
      Failure{file, member}("the array is cut off", std::to_string(header.type.bytes()) + " bytes",
                            std::to_string(static_cast<std::size_t>(first) * size + got));
    }
    if (header.swapped) swap_bytes(dtype, read, here);
    if (dtype == DType::boolean) {
      auto* at = static_cast<std::uint8_t*>(read);
      for (std::int64_t i = 0; i < here; ++i) at[i] = at[i] != 0;
    }
    if (in_place) continue;
    const HostTensor converted = piece.converted(as);
    if (header.column_major) {
      scatter(places, size_here, converted.data(), here, to);
    } else {
      std::memcpy(to + static_cast<std::size_t>(first) * size_here, converted.data(),
                  static_cast<std::size_t>(here) * size_here);
    }
  }
  return tensor;
}

std::string npy_header(const TensorType& type) {
  std::string descr;
  switch (type.dtype) {
    case DType::float32:
      descr = "<f4";
      break;
    case DType::float64:
      descr = "<f8";
      break;
    case DType::float16:
      descr = "<f2";
      break;
    case DType::int8:
      descr = "|i1";
      break;
    case DType::int16:
      descr = "<i2";
      break;
    case DType::int32:
      descr = "<i4";
      break;
    case DType::int64:
      descr = "<i8";
      break;
    case DType::uint8:
      descr = "|u1";
      break;
    case DType::uint16:
      descr = "<u2";
      break;
    case DType::uint32:
      descr = "<u4";
      break;
    case DType::uint64:
      descr = "<u8";
      break;
    case DType::boolean:
      descr = "|b1";
      break;
    case DType::bfloat16:
    case DType::float8_e4m3fn:
    case DType::float8_e4m3fnuz:
    case DType::float8_e5m2:
    case DType::float8_e5m2fnuz:
    case DType::float8_e8m0fnu:
      throw Error(ErrorKind::usage,
                  Diagnostic{.message = "NumPy has no type for " + std::string(name_of(type.dtype)),
                             .fix = "write safetensors, or float32"});
  }
  std::string shape = "(";
  for (std::int64_t extent : type.shape) shape += std::to_string(extent) + ", ";
  if (type.shape.size() > 1) shape.resize(shape.size() - 2);
  if (type.shape.size() == 1) shape.pop_back();
  shape += ")";
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  text.resize((10 + text.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  text += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(text.size() & 0xff);
  head += static_cast<char>(text.size() >> 8);
  return head + text;
}

HostTensor read_npy(const std::string& path) {
  const InputFile file(path);
  FileRange stream(file, 0, file.size());
  const NpyHeader header = read_npy_header(stream, file.size(), path, "");
  claim_memory(header.type.bytes(), path, "",
               to_string(header.type) + ", " + std::to_string(header.type.bytes()) + " bytes");
  return read_npy_elements(stream, header, header.type.dtype, path, "");
}

WrittenFile write_npy(const std::string& path, const HostTensor& tensor) {
  const std::string header = npy_header(tensor.type());
  Sha256 hash;
  hash.update(header.data(), header.size());
  hash.update(tensor.data(), tensor.bytes());
  OutputFile file(path);
  file.write(header);
  file.write(tensor.data(), tensor.bytes());
  file.sync();
  file.close();
  return {file.bytes(), hash.finish()};
}

}  // namespace tandem
