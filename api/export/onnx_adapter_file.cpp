#include "api/export/onnx_adapter_file.h"

#include <cassert>
#include <cstdint>
#include <cstring>
#include <utility>

#include "engine/graph/error.h"

namespace tandem::api {
namespace {

// The only format there is; the other two are numbers of the user's own, which nothing reads.
constexpr std::int32_t format_version = 1, adapter_version = 1, model_version = 1;
constexpr std::uint64_t too_large = std::uint64_t{1} << 31;

/// The number that onnx::TensorProto has for the type.
std::int32_t number_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return 1;
    case DType::float16:
      return 10;
    case DType::float64:
      return 11;
    case DType::bfloat16:
      return 16;
    default:
      assert(false);  // adapters are of a float type
      return 0;
  }
}

/// A FlatBuffer that is written from its beginning, which is possible because an offset is unsigned
/// and counts from its own place: what it points to comes after it. Only a table's offset to its
/// list of fields (the "vtable") counts backwards.
class FlatBytes {
 public:
  std::size_t size() const { return bytes_.size(); }
  std::string take() { return std::move(bytes_); }

  template <class Number>
  void put(Number number) {
    append(&number, sizeof number);
  }
  void append(const void* data, std::size_t bytes) {
    bytes_.append(static_cast<const char*>(data), bytes);
  }
  /// Zeros, until the place `ahead` bytes further on is a multiple of `unit`.
  void align(std::size_t unit, std::size_t ahead = 0) {
    while ((bytes_.size() + ahead) % unit != 0) bytes_.push_back('\0');
  }
  /// An offset that is not known yet; returns its place.
  std::size_t offset() {
    put(std::uint32_t{0});
    return bytes_.size() - sizeof(std::uint32_t);
  }
  /// Lets the offset at `place` point to what is written next.
  void point(std::size_t place) {
    const auto distance = static_cast<std::uint32_t>(bytes_.size() - place);
    std::memcpy(bytes_.data() + place, &distance, sizeof distance);
  }
  /// The beginning of a table of four fields, each of 4 bytes.
  void table(std::size_t fields) {
    put(static_cast<std::int32_t>(bytes_.size()) - static_cast<std::int32_t>(fields));
  }
  /// Begins a list and lets the offset at `place` point to it. Elements are aligned to 8 bytes.
  void list(std::size_t place, std::size_t count) {
    align(sizeof(std::int64_t), sizeof(std::uint32_t));
    point(place);
    put(static_cast<std::uint32_t>(count));
  }

 private:
  std::string bytes_;
};

/// Both tables have four fields of 4 bytes, so that they share this list: its own size, that of a
/// table, and the place of each field in a table, behind the offset to this list.
constexpr std::uint16_t list_of_fields[] = {12, 20, 4, 8, 12, 16};

void put_parameter(FlatBytes& to, std::size_t fields, const NamedTensor& parameter) {
  const HostTensor& tensor = parameter.tensor;
  to.table(fields);
  const std::size_t name = to.offset(), dims = to.offset();
  to.put(number_of(tensor.dtype()));
  const std::size_t data = to.offset();
  to.point(name);
  to.put(static_cast<std::uint32_t>(parameter.name.size()));
  to.append(parameter.name.c_str(), parameter.name.size() + 1);
  to.list(dims, tensor.shape().size());
  for (const std::int64_t extent : tensor.shape()) to.put(extent);
  to.list(data, tensor.bytes());
  to.append(tensor.data(), tensor.bytes());
}

void refuse_large(const std::vector<NamedTensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const NamedTensor& tensor : tensors) {
    constexpr std::uint64_t around = 128;  // at most, besides the name and the extents
    bytes += tensor.tensor.bytes() + tensor.name.size() + around +
             sizeof(std::int64_t) * tensor.tensor.shape().size();
  }
  if (bytes < too_large) return;
  throw Error(ErrorKind::usage,
              Diagnostic{.message = "an .onnx_adapter file cannot hold this many adapters",
                         .expected = "less than 2 GiB",
                         .got = std::to_string(bytes >> 20) + " MiB",
                         .fix = "export with --lora merged, or train adapters of a lower rank"});
}

}  // namespace

std::string onnx_adapter_bytes(const std::vector<NamedTensor>& tensors) {
  refuse_large(tensors);
  FlatBytes bytes;
  const std::size_t root = bytes.offset();
  bytes.append("TORT", 4);
  const std::size_t fields = bytes.size();
  bytes.append(list_of_fields, sizeof list_of_fields);
  bytes.point(root);
  bytes.table(fields);
  for (const std::int32_t version : {format_version, adapter_version, model_version})
    bytes.put(version);
  const std::size_t parameters = bytes.offset();
  bytes.point(parameters);
  bytes.put(static_cast<std::uint32_t>(tensors.size()));
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) places.push_back(bytes.offset());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    bytes.align(sizeof(std::uint32_t));
    bytes.point(places[i]);
    put_parameter(bytes, fields, tensors[i]);
  }
  bytes.align(sizeof(std::int64_t));
  return bytes.take();
}

}  // namespace tandem::api
