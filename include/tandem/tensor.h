// Row-major tensors in host memory, which callers and the library hand to each other.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/dtype.h"

struct DLManagedTensor;  // <dlpack/dlpack.h>

namespace tandem::api::inline v1 {

/// C++ types whose values are elements of a tensor.
template <class T>
concept Element = std::is_arithmetic_v<T> && sizeof(T) <= 8;

/// The element type of a C++ type: float32 of float, boolean of bool, int64 of long.
template <Element T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? DType::float32 : DType::float64;
  constexpr DType with_sign[] = {DType::int8, DType::int16, DType::int32, DType::int64};
  constexpr DType without[] = {DType::uint8, DType::uint16, DType::uint32, DType::uint64};
  constexpr int place = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return std::is_signed_v<T> ? with_sign[place] : without[place];
}

/// Elements that do not change: they are the tensor's own, or borrowed from memory that outlives it and all its copies.
/// Copies share the elements, from any threads.
class Tensor {
 public:
  Tensor();  ///< float32 of shape [0]
  /// Copies all values of a vector, an array or a span. Throws Error{usage} where they do not fill the shape, an extent
  /// is negative, or an int64 does not count the bytes.
  template <class Values>
  static Tensor copy_of(std::vector<std::int64_t> shape, const Values& values) {
    const std::span all(values);
    return copy_of_bytes(dtype_of<Of<decltype(all)>>(), std::move(shape), std::as_bytes(all));
  }
  /// Borrows the values, which have to stay as they are. Throws as `copy_of`.
  template <class Values>
  static Tensor view(std::vector<std::int64_t> shape, const Values& values) {
    const std::span all(values);
    return view_bytes(dtype_of<Of<decltype(all)>>(), std::move(shape), std::as_bytes(all));
  }
  template <class Values>
  static Tensor view(std::vector<std::int64_t> shape, const Values&& temporary) = delete;
  /// For element types without a C++ type, such as float16.
  static Tensor copy_of_bytes(DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> bytes);
  /// `owner` keeps the bytes as long as a copy of the tensor is there; null: the caller does.
  static Tensor view_bytes(DType dtype, std::vector<std::int64_t> shape, std::span<const std::byte> bytes,
                           std::shared_ptr<const void> owner = nullptr);
  /// Takes a tensor of another library over, without a copy where it is row-major: its deleter is called once no copy
  /// needs it any more. Other strides are copied. Throws Error{usage} for memory of another device than the host and
  /// for types that DType lacks; it stays the caller's then.
  static Tensor from_dlpack(DLManagedTensor* managed);
  /// The elements for another library, without a copy, which must not write to them. The caller calls the deleter.
  /// Throws Error{usage} for types that DLPack lacks.
  DLManagedTensor* to_dlpack() const;
  DType dtype() const;
  const std::vector<std::int64_t>& shape() const;  ///< extents, the outermost first; none: one element
  std::int64_t elements() const;
  std::span<const std::byte> bytes() const;
  /// Throws Error{usage} where the elements are of another type.
  template <Element T>
  std::span<const T> values() const {
    const std::span<const std::byte> all = bytes_of(dtype_of<T>());
    return {reinterpret_cast<const T*>(all.data()), all.size() / sizeof(T)};
  }
  bool operator==(const Tensor& other) const;  ///< whether type, shape and bytes are equal
  std::vector<float> floats() const;           ///< all elements, converted to float32 whatever type they have

 private:
  template <class Span>
  using Of = std::remove_const_t<typename Span::element_type>;
  std::span<const std::byte> bytes_of(DType expected) const;

  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

/// By name of an input, output, data field or parameter.
using Tensors = std::map<std::string, Tensor>;

}  // namespace tandem::api::inline v1
