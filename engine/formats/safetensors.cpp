#include "engine/formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/formats/claim.h"
#include "engine/formats/json_file.h"
#include "engine/graph/align.h"
#include "engine/graph/error.h"

namespace tandem {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t header_limit = 100'000'000;
constexpr std::size_t buffer_bytes = 4 << 20;

constexpr std::pair<std::string_view, DType> type_names[] = {
    {"F32", DType::float32},
    {"F64", DType::float64},
    {"F16", DType::float16},
    {"BF16", DType::bfloat16},
    {"I8", DType::int8},
    {"I16", DType::int16},
    {"I32", DType::int32},
    {"I64", DType::int64},
    {"U8", DType::uint8},
    {"U16", DType::uint16},
    {"U32", DType::uint32},
    {"U64", DType::uint64},
    {"BOOL", DType::boolean},
    {"F8_E4M3", DType::float8_e4m3fn},
    {"F8_E4M3FNUZ", DType::float8_e4m3fnuz},
    {"F8_E5M2", DType::float8_e5m2},
    {"F8_E5M2FNUZ", DType::float8_e5m2fnuz},
    {"F8_E8M0", DType::float8_e8m0fnu}};

std::string_view name_in_file(DType dtype) {
  for (const auto& [name, type] : type_names) {
    if (type == dtype) return name;
  }
  return "";
}

std::optional<DType> type_in_file(std::string_view text) {
  for (const auto& [name, type] : type_names) {
    if (name == text) return type;
  }
  return std::nullopt;
}

// Hashes what it writes and joins small pieces.
class HashedFile {
 public:
  explicit HashedFile(const std::string& path) : file_(path) { buffer_.reserve(buffer_bytes); }

  void write(const void* data, std::size_t bytes) {
    hash_.update(data, bytes);
    if (buffer_.size() + bytes > buffer_bytes) flush();
    if (bytes > buffer_bytes) return file_.write(data, bytes);
    buffer_.append(static_cast<const char*>(data), bytes);
  }
  WrittenFile finish() {
    flush();
    file_.sync();
    file_.close();
    return {file_.bytes(), hash_.finish()};
  }

 private:
  void flush() {
    file_.write(buffer_);
    buffer_.clear();
  }
  OutputFile file_;
  std::string buffer_;
  Sha256 hash_;
};

void write_rows(HashedFile& file, const TensorSource& tensor) {
  if (tensor.data != nullptr) return file.write(tensor.data, tensor.type.bytes());
  const std::size_t row_bytes = tensor.row_bytes();
  if (row_bytes == 0) return;
  const std::int64_t rows = tensor.rows();
  const std::int64_t range = std::min(
      rows, static_cast<std::int64_t>(std::max<std::size_t>(1, source_range_bytes / row_bytes)));
  std::vector<std::byte> buffer(row_bytes * static_cast<std::size_t>(range));
  for (std::int64_t first = 0; first < rows; first += range) {
    const std::int64_t count = std::min(range, rows - first);
    tensor.read(first, count, buffer.data());
    file.write(buffer.data(), row_bytes * static_cast<std::size_t>(count));
  }
}

}  // namespace

TensorSource source_of(const NamedTensor& tensor) {
  return {tensor.name, tensor.tensor.type(), {}, tensor.tensor.data()};
}

std::vector<TensorSource> sources_of(const std::vector<NamedTensor>& tensors) {
  std::vector<TensorSource> sources;
  for (const NamedTensor& tensor : tensors) sources.push_back(source_of(tensor));
  return sources;
}

WrittenFile write_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  return write_safetensors(path, sources_of(tensors), metadata);
}

std::vector<const TensorSource*> in_file_order(const std::vector<TensorSource>& tensors) {
  std::vector<const TensorSource*> order;
  for (const TensorSource& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorSource* a, const TensorSource* b) {
    return size_of(a->type.dtype) > size_of(b->type.dtype);
  });
  return order;
}

WrittenFile write_safetensors(const std::string& path, const std::vector<TensorSource>& tensors,
                              const std::map<std::string, std::string>& metadata,
                              std::size_t alignment) {
  std::set<std::string_view> names;
  for (const TensorSource& tensor : tensors) {
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second) {
      throw Error(ErrorKind::usage, {.message = "a tensor cannot be stored under this name (it is "
                                                "reserved or taken)",
                                     .file = path,
                                     .path = tensor.name});
    }
  }
  const std::vector<const TensorSource*> order = in_file_order(tensors);

  std::string text = "{";
  try {
    if (!metadata.empty()) text += "\"__metadata__\":" + nlohmann::json(metadata).dump();
    std::uint64_t offset = 0;
    for (const TensorSource* tensor : order) {
      const std::uint64_t end = offset + tensor->type.bytes();
      text += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                          text.size() > 1 ? "," : "", nlohmann::json(tensor->name).dump(),
                          name_in_file(tensor->type.dtype), fmt::join(tensor->type.shape, ","),
                          offset, end);
      offset = end;
    }
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::usage,
                {.message = "a name or a metadata text is not UTF-8", .file = path});
  }
  text += '}';
  text.resize(align_up(8 + text.size(), alignment) - 8, ' ');
  if (text.size() > header_limit) {
    throw Error(ErrorKind::usage, {.message = "too many tensors for one safetensors file",
                                   .file = path,
                                   .expected = "a header of at most 100 MB",
                                   .got = std::to_string(text.size()) + " bytes"});
  }

  HashedFile file(path);
  const std::uint64_t header_bytes = text.size();
  file.write(&header_bytes, 8);
  file.write(text.data(), text.size());
  for (const TensorSource* tensor : order) write_rows(file, *tensor);
  return file.finish();
}

namespace {

struct Reader {
  const std::string& path;

  [[noreturn]] void fail(std::string message, std::string tensor = "", std::string expected = "",
                         std::string got = "") const {
    throw Error(ErrorKind::data, {.message = std::move(message),
                                  .file = path,
                                  .path = std::move(tensor),
                                  .expected = std::move(expected),
                                  .got = std::move(got)});
  }
};

struct Entry {
  std::string name;
  TensorType type;
  std::uint64_t begin = 0, end = 0;
};

/// Extents or offsets; nothing where it is no list of them.
std::optional<std::vector<std::uint64_t>> numbers_of(const JsonItem& list) {
  constexpr std::size_t most_axes = 64;
  if (!list.is_list() || list.size() > most_axes) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (const JsonItem& item : list.items()) {
    const std::optional<std::uint64_t> number = item.as_natural();
    if (!number || *number > std::uint64_t{1} << 62) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

Entry read_entry(const Reader& reader, const std::string& name, const JsonItem& json) {
  Entry entry{.name = name};
  if (!json.is_object()) reader.fail("its entry is not an object", name);
  const auto dtype = json.find("dtype"), shape = json.find("shape"),
             offsets = json.find("data_offsets");
  if (!dtype || !shape || !offsets || json.size() != 3) {
    reader.fail("its entry has other members", name, "dtype, shape and data_offsets");
  }
  const std::optional<DType> type = type_in_file(dtype->as_text().value_or(""));
  if (!type) reader.fail("its element type is not supported", name, "", dtype->shown());
  entry.type.dtype = *type;

  const auto extents = numbers_of(*shape), ends = numbers_of(*offsets);
  if (!extents) reader.fail("its shape is not a list of extents", name);
  if (!ends || ends->size() != 2) reader.fail("its data_offsets are not two numbers", name);
  std::uint64_t bytes = size_of(*type);  // counts empty axes as 1, to find overflows
  bool empty = false;
  for (const std::uint64_t extent : *extents) {
    entry.type.shape.push_back(static_cast<std::int64_t>(extent));
    empty |= extent == 0;
    if (__builtin_mul_overflow(bytes, std::max<std::uint64_t>(extent, 1), &bytes) ||
        bytes > std::uint64_t{1} << 62) {
      reader.fail("its shape is too large", name, "", to_string(entry.type.shape));
    }
  }
  if (empty) bytes = 0;
  entry.begin = (*ends)[0];
  entry.end = (*ends)[1];
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
    reader.fail("its data_offsets do not fit its shape", name,
                std::to_string(bytes) + " bytes for " + to_string(entry.type),
                "[" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + "]");
  }
  return entry;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) {
  const Reader reader{path};
  const auto file = std::make_shared<MappedFile>(path);
  if (file->size() < 8) reader.fail("not a safetensors file: shorter than 8 bytes");
  std::uint64_t header_bytes;
  std::memcpy(&header_bytes, file->data(), 8);
  if (header_bytes > header_limit || header_bytes > file->size() - 8) {
    reader.fail(
        "not a safetensors file, or cut off: the length of the header does not fit", "",
        "at most " + std::to_string(std::min<std::uint64_t>(header_limit, file->size() - 8)),
        std::to_string(header_bytes));
  }
  constexpr std::uint64_t of_a_byte = 32;  // memory for a byte of the header, once it is parsed
  claim_memory(of_a_byte * header_bytes, path, "",
               std::to_string(of_a_byte * header_bytes) + " bytes for a header of " +
                   std::to_string(header_bytes));
  const char* text = reinterpret_cast<const char*>(file->data() + 8);
  if (header_bytes == 0 || text[0] != '{') reader.fail("the header does not start with {");
  const JsonFile header({.file = path, .what = "the header", .offset = 8},
                        std::string_view(text, header_bytes),
                        {.bytes = header_limit, .values = std::size_t{1} << 23, .depth = 3});

  std::vector<Entry> entries;
  for (const auto& [name, json] : header.root().members()) {
    if (name != "__metadata__") {
      entries.push_back(read_entry(reader, name, json));
      continue;
    }
    if (!json.is_object()) reader.fail("__metadata__ is not an object");
    for (const auto& [key, value] : json.members()) {
      std::optional<std::string> says = value.as_text();
      if (!says) reader.fail("__metadata__ holds something else than text", key);
      metadata_[key] = std::move(*says);
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  data_offset_ = 8 + header_bytes;
  const std::uint64_t data_bytes = file->size() - 8 - header_bytes;
  std::uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != end) {
      reader.fail(entry.begin > end ? "there is a hole before it" : "it overlaps the one before it",
                  entry.name, "offset " + std::to_string(end), std::to_string(entry.begin));
    }
    end = entry.end;
  }
  if (end != data_bytes) {
    reader.fail(end > data_bytes ? "the file is cut off" : "bytes follow the last tensor", "",
                std::to_string(8 + header_bytes + end) + " bytes", std::to_string(file->size()));
  }

  for (Entry& entry : entries) {
    std::uint8_t* at = file->data() + 8 + header_bytes + entry.begin;
    HostTensor tensor;
    if (reinterpret_cast<std::uintptr_t>(at) % size_of(entry.type.dtype) == 0) {
      tensor = HostTensor(entry.type, at, file);
    } else {
      tensor = HostTensor(entry.type);
      if (tensor.bytes() > 0) std::memcpy(tensor.data(), at, tensor.bytes());
    }
    index_[entry.name] = tensors_.size();
    tensors_.push_back({std::move(entry.name), std::move(tensor)});
  }
}

const HostTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second].tensor;
}

}  // namespace tandem
