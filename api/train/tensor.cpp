// tandem::api::Tensor: elements that are owned, shared or borrowed.
#include "tandem/tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "api/train/host_tensors.h"
#include "tandem/error.h"

namespace tandem::api {
inline namespace v1 {

struct Tensor::Impl {
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape{0};
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // null: the caller's memory
};

}  // namespace v1
}  // namespace tandem::api

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

void check_bytes(DType dtype, const std::vector<std::int64_t>& shape, std::size_t bytes) {
  const auto elements = elements_of(shape, size_of(dtype));
  if (!elements) {
    refuse("", "a tensor cannot have this shape",
           "extents of 0 and more, and bytes that an int64 counts", to_string(shape));
  }
  if (bytes == *elements * size_of(dtype)) return;
  if (bytes % size_of(dtype) != 0) {
    refuse("", "a tensor's bytes do not fit its type",
           std::to_string(*elements * size_of(dtype)) + " bytes of " + std::string(name_of(dtype)) +
               to_string(shape),
           std::to_string(bytes) + " bytes");
  }
  refuse("", "a tensor's values do not fill its shape",
         std::to_string(*elements) + " values for " + to_string(shape),
         std::to_string(bytes / size_of(dtype)));
}

}  // namespace

Tensor::Tensor() : impl_(std::make_shared<const Impl>()) {}

Tensor Tensor::view_bytes(DType dtype, std::vector<std::int64_t> shape,
                          std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  check_bytes(dtype, shape, bytes.size());
  Tensor tensor;
  tensor.impl_ =
      std::make_shared<const Impl>(Impl{dtype, std::move(shape), bytes, std::move(owner)});
  return tensor;
}

Tensor Tensor::copy_of_bytes(DType dtype, std::vector<std::int64_t> shape,
                             std::span<const std::byte> bytes) {
  check_bytes(dtype, shape, bytes.size());
  HostTensor copy(TensorType{dtype, std::move(shape)});
  if (!bytes.empty()) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return public_tensor(copy);
}

DType Tensor::dtype() const { return impl_->dtype; }
const std::vector<std::int64_t>& Tensor::shape() const { return impl_->shape; }
std::span<const std::byte> Tensor::bytes() const { return impl_->bytes; }
std::int64_t Tensor::elements() const {
  return static_cast<std::int64_t>(impl_->bytes.size() / size_of(impl_->dtype));
}

bool Tensor::operator==(const Tensor& other) const {
  const std::span<const std::byte> own = bytes(), others = other.bytes();
  return dtype() == other.dtype() && shape() == other.shape() &&
         std::equal(own.begin(), own.end(), others.begin(), others.end());
}

std::span<const std::byte> Tensor::bytes_of(DType expected) const {
  if (expected == impl_->dtype) return impl_->bytes;
  refuse("", "the elements of this tensor have another type", std::string(name_of(impl_->dtype)),
         std::string(name_of(expected)));
}

std::vector<float> Tensor::floats() const {
  const HostTensor tensor = host_tensor(*this, "").converted(DType::float32);
  const auto values = tensor.as<float>();
  return {values.begin(), values.end()};
}

TensorType checked_type(const Tensor& tensor, const std::string& name) {
  if (tensor.dtype() == DType::boolean) {
    const std::span<const std::byte> bytes = tensor.bytes();
    const auto wrong = std::find_if(bytes.begin(), bytes.end(),
                                    [](std::byte value) { return value > std::byte{1}; });
    if (wrong != bytes.end()) {
      refuse(name, "a byte of a bool tensor is neither 0 nor 1", "0 or 1",
             std::to_string(std::to_integer<int>(*wrong)));
    }
  }
  return {tensor.dtype(), tensor.shape()};
}

// The casts are safe: HostTensors of feeds and of set parameters are only read.
HostTensor host_tensor(const Tensor& tensor, const std::string& name) {
  TensorType type = checked_type(tensor, name);
  auto owner = std::make_shared<Tensor>(tensor);
  return HostTensor(std::move(type), const_cast<std::byte*>(tensor.bytes().data()), owner);
}

Tensor public_tensor(const HostTensor& tensor) {
  const auto owner = std::make_shared<const HostTensor>(tensor);
  const auto* const data = static_cast<const std::byte*>(owner->data());
  return Tensor::view_bytes(tensor.dtype(), tensor.shape(), {data, tensor.bytes()}, owner);
}

}  // namespace tandem::api
