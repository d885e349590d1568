// Arrays of the public library, and their way in and out of the engine's tensors.
#include "api/array.h"

#include <cstring>

namespace tandem::api {
namespace {

template <class T>
Array make(const char* dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  Array array;
  array.dtype = dtype;
  array.shape = std::move(shape);
  array.bytes.resize(values.size() * sizeof(T));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

}  // namespace

Array Array::of(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  return make("float32", std::move(shape), values);
}
Array Array::of(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values) {
  return make("int64", std::move(shape), values);
}

std::vector<float> Array::floats() const {
  const HostTensor tensor = to_tensor(*this, "").converted(DType::float32);
  const auto values = tensor.as<float>();
  return {values.begin(), values.end()};
}

HostTensor to_tensor(const Array& array, const std::string& name) {
  const auto dtype = dtype_from_name(array.dtype);
  const std::int64_t elements = element_count(array.shape);
  if (!dtype || elements < 0 ||
      array.bytes.size() != static_cast<std::size_t>(elements) * size_of(*dtype)) {
    Diagnostic d;
    d.path = name;
    d.message = "an array's bytes do not fit its type";
    d.expected = array.dtype + to_string(array.shape);
    d.got = std::to_string(array.bytes.size()) + " bytes";
    throw Error(ErrorKind::usage, std::move(d));
  }
  HostTensor tensor(TensorType{*dtype, array.shape});
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
