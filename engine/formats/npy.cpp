#include "engine/formats/npy.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>

#include "engine/formats/npy_array.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

constexpr std::size_t header_limit = 65536;

struct Failure {
  const std::string& file;
  const std::string& member;
  [[noreturn]] void operator()(std::string message, std::string expected = "",
                               std::string got = "") const {
    throw Error(ErrorKind::data, {.message = std::move(message),
                                  .file = file,
                                  .path = member,
                                  .expected = std::move(expected),
                                  .got = std::move(got)});
  }
};

struct Header {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
};

// The dictionary literal that NumPy writes: {'descr': '<f4', 'fortran_order': False, 'shape': (3,
// 2), }.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const Failure& fail) : text_(text), fail_(fail) {}

  Header parse() {
    Header header;
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

void swap_bytes(HostTensor& tensor) {
  const std::int64_t count = tensor.type().elements();
  switch (size_of(tensor.dtype())) {
    case 2:
      return swap_elements<std::uint16_t>(tensor.data(), count);
    case 4:
      return swap_elements<std::uint32_t>(tensor.data(), count);
    case 8:
      return swap_elements<std::uint64_t>(tensor.data(), count);
    default:
      return;
  }
}

HostTensor row_major_from_fortran(const HostTensor& from) {
  const Shape& shape = from.shape();
  HostTensor to(from.type());
  const std::size_t size = size_of(from.dtype());
  const auto* source = static_cast<const std::uint8_t*>(from.data());
  auto* target = static_cast<std::uint8_t*>(to.data());
  std::vector<std::int64_t> index(shape.size()), stride(shape.size(), 1);
  for (std::size_t axis = 1; axis < shape.size(); ++axis) {
    stride[axis] = stride[axis - 1] * shape[axis - 1];
  }
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < to.type().elements(); ++i) {
    std::memcpy(target + static_cast<std::size_t>(i) * size,
                source + static_cast<std::size_t>(offset) * size, size);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      offset += stride[axis];
      if (++index[axis] < shape[axis]) break;
      offset -= index[axis] * stride[axis];
      index[axis] = 0;
    }
  }
  return to;
}

}  // namespace

HostTensor parse_npy(const std::uint8_t* data, std::size_t bytes, const std::string& file,
                     const std::string& member) {
  const Failure fail{file, member};
  if (bytes < 10 || std::memcmp(data, "\x93NUMPY", 6) != 0) fail("not a .npy array");
  const int major = data[6];
  if (major < 1 || major > 3) fail("unknown version of .npy", "1 to 3", std::to_string(major));
  const std::size_t start = major == 1 ? 10 : 12;
  if (bytes < start) fail("the array is cut off in its header");
  std::size_t length = data[8] | std::size_t{data[9]} << 8;
  if (major > 1) length |= std::size_t{data[10]} << 16 | std::size_t{data[11]} << 24;
  if (length > header_limit) {
    fail("the header is too long", "at most " + std::to_string(header_limit) + " bytes",
         std::to_string(length));
  }
  if (bytes - start < length) fail("the array is cut off in its header");
  const std::string_view text(reinterpret_cast<const char*>(data) + start, length);
  const Header header = HeaderParser(text, fail).parse();

  std::string_view descr = header.descr;
  if (descr.starts_with("|O") || descr.starts_with("O")) {
    fail("arrays of Python objects are not read", "numbers", header.descr);
  }
  char order = '<';
  if (!descr.empty() && std::strchr("<>|=", descr[0]) != nullptr) {
    order = descr[0];
    descr.remove_prefix(1);
  }
  const std::optional<DType> dtype = type_from_descr(descr);
  if (!dtype) fail("the element type is not supported", "numbers or booleans", header.descr);

  std::uint64_t wanted = size_of(*dtype);
  for (std::int64_t extent : header.shape) {
    if (__builtin_mul_overflow(wanted, static_cast<std::uint64_t>(extent), &wanted)) {
      fail("the shape is too large", "", to_string(header.shape));
    }
  }
  if (std::find(header.shape.begin(), header.shape.end(), 0) != header.shape.end()) wanted = 0;
  const std::size_t there = bytes - start - length;
  if (wanted != there) {
    fail(there < wanted ? "the array is cut off" : "bytes follow the array",
         std::to_string(wanted) + " bytes after offset " + std::to_string(start + length),
         std::to_string(there));
  }
  HostTensor tensor(TensorType{*dtype, header.shape});
  if (wanted > 0) std::memcpy(tensor.data(), data + start + length, wanted);
  if (order == '>') swap_bytes(tensor);
  if (*dtype == DType::boolean) {
    auto* at = static_cast<std::uint8_t*>(tensor.data());
    for (std::size_t i = 0; i < wanted; ++i) at[i] = at[i] != 0;
  }
  return header.fortran_order && header.shape.size() > 1 ? row_major_from_fortran(tensor) : tensor;
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
      throw Error(ErrorKind::usage, Diagnostic{.message = "NumPy has no type for bfloat16",
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
  const MappedFile file(path);
  return parse_npy(file.data(), file.size(), path, "");
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
