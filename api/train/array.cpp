// Arrays of the public library, and their conversion to and from the engine's tensors.
#include "api/train/array.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

namespace tandem::api {
namespace {

/// Number of elements of a shape; empty where an extent is negative, or where the number of bytes
/// overflows, even if extents of 0 are ignored.
std::optional<std::size_t> elements_of(const std::vector<std::int64_t>& shape, std::size_t size) {
  const auto most = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max()) / size;
  std::size_t elements = 1;
  bool is_empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    is_empty = is_empty || extent == 0;
    const std::size_t factor = static_cast<std::size_t>(std::max<std::int64_t>(extent, 1));
    if (factor > most / elements) return std::nullopt;
    elements *= factor;
  }
  return is_empty ? 0 : elements;
}

[[noreturn]] void refuse(const std::string& name, std::string message, std::string expected,
                         std::string got) {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .path = name,
                                           .expected = std::move(expected),
                                           .got = std::move(got)});
}

std::size_t checked_elements(const std::vector<std::int64_t>& shape, std::size_t size,
                             const std::string& name) {
  const auto elements = elements_of(shape, size);
  if (!elements) {
    refuse(name, "an array cannot have this shape",
           "extents of 0 and more, and bytes that an int64 counts", to_string(shape));
  }
  return *elements;
}

DType checked_dtype(const std::string& dtype, const std::string& name) {
  if (const auto known = dtype_from_name(dtype)) return *known;
  refuse(name, "an array's element type has no such name", dtype_names(), "\"" + dtype + "\"");
}

template <class T>
Array make(DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  if (const std::size_t elements = checked_elements(shape, sizeof(T), "");
      values.size() != elements) {
    refuse("", "an array's values do not fill its shape",
           std::to_string(elements) + " values for " + to_string(shape),
           std::to_string(values.size()));
  }
  Array array;
  array.dtype = std::string(name_of(dtype));
  array.shape = std::move(shape);
  array.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

}  // namespace

Array Array::of(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  return make(DType::float32, std::move(shape), values);
}
Array Array::of(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values) {
  return make(DType::int64, std::move(shape), values);
}

std::vector<float> Array::floats() const {
  const HostTensor tensor = to_tensor(*this, "").converted(DType::float32);
  const auto values = tensor.as<float>();
  return {values.begin(), values.end()};
}

TensorType checked_type(const Array& array, const std::string& name) {
  const DType dtype = checked_dtype(array.dtype, name);
  const std::size_t bytes = checked_elements(array.shape, size_of(dtype), name) * size_of(dtype);
  if (array.bytes.size() != bytes) {
    refuse(name, "an array's bytes do not fit its type",
           std::to_string(bytes) + " bytes of " + array.dtype + to_string(array.shape),
           std::to_string(array.bytes.size()) + " bytes");
  }
  if (dtype == DType::boolean) {
    const auto wrong = std::find_if(array.bytes.begin(), array.bytes.end(),
                                    [](std::byte value) { return value > std::byte{1}; });
    if (wrong != array.bytes.end())
      refuse(name, "a byte of a bool array is neither 0 nor 1", "0 or 1",
             std::to_string(std::to_integer<int>(*wrong)));
  }
  return {dtype, array.shape};
}

HostTensor to_tensor(const Array& array, const std::string& name) {
  HostTensor tensor(checked_type(array, name));
  if (!array.bytes.empty()) std::memcpy(tensor.data(), array.bytes.data(), array.bytes.size());
  return tensor;
}

Array to_array(const HostTensor& tensor) {
  Array array;
  array.dtype = std::string(name_of(tensor.dtype()));
  array.shape = tensor.shape();
  array.bytes.resize(tensor.bytes());
  if (!array.bytes.empty()) std::memcpy(array.bytes.data(), tensor.data(), array.bytes.size());
  return array;
}

}  // namespace tandem::api
