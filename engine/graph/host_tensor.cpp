#include "engine/graph/host_tensor.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "engine/graph/align.h"
#include "engine/graph/float8.h"
#include "engine/graph/host_memory.h"

namespace tandem {
namespace {

constexpr std::size_t alignment = 64;
/// From this size on the system gives zero pages that take no memory until they are written.
constexpr std::size_t mapped_from = std::size_t{1} << 20;

[[noreturn]] void no_memory(const TensorType& type) {
  fail_without_memory({.message = "the host has no memory left for a tensor",
                       .got = to_string(type) + ", " + std::to_string(type.bytes()) + " bytes",
                       .fix = "use a smaller batch or more micro-batches, or give tables fewer "
                              "rows: parameters.shape = [ { at = \"TABLE\", rows = 100000 } ]"});
}

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return static_cast<double>(value) != 0.0;
  } else if constexpr (std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

HostTensor::HostTensor(TensorType type) : type_(std::move(type)) {
  const std::size_t size = align_up(type_.bytes(), alignment);
  if (size == 0) return;
  if (size >= mapped_from) {
    data_ = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) no_memory(type_);
    owner_ = std::shared_ptr<void>(data_, [size](void* data) { munmap(data, size); });
    return;
  }
  data_ = std::aligned_alloc(alignment, size);
  if (data_ == nullptr) no_memory(type_);
  std::memset(data_, 0, size);
  owner_ = std::shared_ptr<void>(data_, std::free);
}

HostTensor::HostTensor(TensorType type, void* data, std::shared_ptr<void> owner)
    : type_(std::move(type)), data_(data), owner_(std::move(owner)) {}

HostTensor HostTensor::clone() const {
  HostTensor copy(type_);
  if (bytes() > 0) std::memcpy(copy.data_, data_, bytes());
  return copy;
}

HostTensor HostTensor::reshaped(Shape shape) const {
  HostTensor copy = *this;
  copy.type_.shape = std::move(shape);
  assert(copy.type_.elements() == type_.elements());
  return copy;
}

HostTensor HostTensor::converted(DType dtype) const {
  if (dtype == type_.dtype) return *this;
  const std::int64_t count = type_.elements();
  if (is_float8(type_.dtype)) {
    HostTensor wide(TensorType{DType::float32, type_.shape});
    const std::array<float, 256>& values = float8_values(type_.dtype);
    const auto* codes = static_cast<const std::uint8_t*>(data_);
    auto* numbers = static_cast<float*>(wide.data_);
    for (std::int64_t i = 0; i < count; ++i) numbers[i] = values[codes[i]];
    return wide.converted(dtype);
  }
  HostTensor result(TensorType{dtype, type_.shape});
  if (is_float8(dtype)) {
    auto* codes = static_cast<std::uint8_t*>(result.data_);
    with_type(type_.dtype, [&](auto tag) {
      const auto* from = static_cast<const decltype(tag)*>(data_);
      for (std::int64_t i = 0; i < count; ++i)
        codes[i] = encode_float8(dtype, convert<float>(from[i]));
    });
    return result;
  }
  with_type(type_.dtype, [&](auto from_tag) {
    using From = decltype(from_tag);
    const From* from = static_cast<const From*>(data_);
    with_type(dtype, [&](auto to_tag) {
      using To = decltype(to_tag);
      To* to = static_cast<To*>(result.data_);
      for (std::int64_t i = 0; i < count; ++i) to[i] = convert<To>(from[i]);
    });
  });
  return result;
}

double HostTensor::number(std::int64_t index) const {
  if (is_float8(type_.dtype))
    return float8_values(type_.dtype)[static_cast<const std::uint8_t*>(data_)[index]];
  return with_type(type_.dtype, [&](auto tag) {
    using T = decltype(tag);
    return static_cast<double>(static_cast<const T*>(data_)[index]);
  });
}

std::vector<std::int64_t> HostTensor::integers() const {
  const HostTensor wide = converted(DType::int64);
  const auto values = wide.as<std::int64_t>();
  return {values.begin(), values.end()};
}

}  // namespace tandem
