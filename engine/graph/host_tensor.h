// A row-major tensor in host memory, for constants, initial values, data and checkpoints.
#pragma once

#include <cassert>
#include <memory>
#include <span>
#include <vector>

#include "engine/graph/half.h"
#include "engine/graph/types.h"

namespace tandem {

template <class T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::float32;
};
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::float64;
};
template <>
struct dtype_of<Float16> {
  static constexpr DType value = DType::float16;
};
template <>
struct dtype_of<BFloat16> {
  static constexpr DType value = DType::bfloat16;
};
template <>
struct dtype_of<std::int8_t> {
  static constexpr DType value = DType::int8;
};
template <>
struct dtype_of<std::int16_t> {
  static constexpr DType value = DType::int16;
};
template <>
struct dtype_of<std::int32_t> {
  static constexpr DType value = DType::int32;
};
template <>
struct dtype_of<std::int64_t> {
  static constexpr DType value = DType::int64;
};
template <>
struct dtype_of<std::uint8_t> {
  static constexpr DType value = DType::uint8;
};
template <>
struct dtype_of<std::uint16_t> {
  static constexpr DType value = DType::uint16;
};
template <>
struct dtype_of<std::uint32_t> {
  static constexpr DType value = DType::uint32;
};
template <>
struct dtype_of<std::uint64_t> {
  static constexpr DType value = DType::uint64;
};
template <>
struct dtype_of<bool> {
  static constexpr DType value = DType::boolean;
};

/// Copies share the storage; `clone` does not. The storage is 64-byte aligned when allocated here.
class HostTensor {
 public:
  HostTensor() = default;
  /// Zero-filled.
  explicit HostTensor(TensorType type);
  /// Views memory owned by `owner` (a mapped file, another library's buffer).
  HostTensor(TensorType type, void* data, std::shared_ptr<void> owner);

  template <class T>
  static HostTensor from(Shape shape, const std::vector<T>& values) {
    HostTensor tensor(TensorType{dtype_of<T>::value, std::move(shape)});
    assert(static_cast<std::int64_t>(values.size()) == tensor.type().elements());
    T* to = static_cast<T*>(tensor.data());
    for (std::size_t i = 0; i < values.size(); ++i) to[i] = values[i];
    return tensor;
  }

  const TensorType& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  std::size_t bytes() const { return type_.bytes(); }
  void* data() { return data_; }
  const void* data() const { return data_; }

  template <class T>
  std::span<T> as() {
    assert(dtype_of<T>::value == type_.dtype);
    return {static_cast<T*>(data_), static_cast<std::size_t>(type_.elements())};
  }
  template <class T>
  std::span<const T> as() const {
    assert(dtype_of<T>::value == type_.dtype);
    return {static_cast<const T*>(data_), static_cast<std::size_t>(type_.elements())};
  }

  HostTensor clone() const;
  /// Same bytes under another shape with the same number of elements.
  HostTensor reshaped(Shape shape) const;
  /// Element-wise conversion, C++ rules for numbers; to bool: x != 0.
  HostTensor converted(DType dtype) const;
  /// Any element as a number (row-major index).
  double number(std::int64_t index) const;
  /// Integer element types and bool only.
  std::vector<std::int64_t> integers() const;

 private:
  TensorType type_;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

/// Calls f with a value of the C++ type that stores `dtype`.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32:
      return f(float{});
    case DType::float64:
      return f(double{});
    case DType::float16:
      return f(Float16{});
    case DType::bfloat16:
      return f(BFloat16{});
    case DType::int8:
      return f(std::int8_t{});
    case DType::int16:
      return f(std::int16_t{});
    case DType::int32:
      return f(std::int32_t{});
    case DType::int64:
      return f(std::int64_t{});
    case DType::uint8:
      return f(std::uint8_t{});
    case DType::uint16:
      return f(std::uint16_t{});
    case DType::uint32:
      return f(std::uint32_t{});
    case DType::uint64:
      return f(std::uint64_t{});
    case DType::boolean:
      break;
  }
  return f(bool{});
}

}  // namespace tandem
