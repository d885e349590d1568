// A row-major tensor in host memory, for constants, initial values, data and checkpoints.
#pragma once

#include <cassert>
#include <memory>
#include <span>
#include <vector>

#include "engine/graph/dtype_dispatch.h"
#include "engine/graph/types.h"

namespace tandem {

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
  /// Element-wise conversion, C++ rules for numbers; to bool: x != 0; to 8-bit floats: saturating.
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

}  // namespace tandem
