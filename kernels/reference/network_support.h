// What the reference kernels of the network operators share: places of elements under any strides,
// numbers of any element type, and the frame of a kernel.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/kernel.h"
#include "engine/graph/host_tensor.h"
#include "kernels/reference/support.h"

namespace tandem::reference {

/// Places of elements, counted in elements from the operand's address. `over` is walked in
/// row-major order.
class Places {
 public:
  Places() = default;
  explicit Places(const Operand& operand) : Places(operand, operand.type.shape) {}

  /// The operand broadcast to `over` by numpy's rule.
  Places(const Operand& operand, const Shape& over) : shape_(over), strides_(over.size(), 0) {
    if (!operand.present) return;
    const Shape& own = operand.type.shape;
    assert(own.size() <= over.size() && operand.layout.is_strided());
    for (std::size_t i = 0; i < own.size(); ++i) {
      const std::size_t axis = i + over.size() - own.size();
      if (own[i] != 1) strides_[axis] = operand.layout.strides[i];
    }
    Layout layout{0, strides_};
    plain_ = is_row_major(layout, over);
  }

  /// Walks only the indices that are 0 on the axes from `first` to one before `last`.
  Places without(std::size_t first, std::size_t last) const {
    Places rest = *this;
    for (std::size_t axis = first; axis < last; ++axis) rest.shape_[axis] = 1;
    rest.plain_ = is_row_major(Layout{0, rest.strides_}, rest.shape_);
    return rest;
  }

  /// Walks only the axes from `first` to one before `last`.
  Places only(std::size_t first, std::size_t last) const {
    return without(0, first).without(last, shape_.size());
  }

  std::int64_t count() const { return element_count(shape_); }
  std::int64_t stride(std::size_t axis) const { return strides_[axis]; }

  /// The place of the element with this row-major index in what is walked.
  std::int64_t operator()(std::int64_t index) const {
    if (plain_) return index;
    std::int64_t place = 0;
    for (std::size_t axis = shape_.size(); axis-- > 0;) {
      place += index % shape_[axis] * strides_[axis];
      index /= shape_[axis];
    }
    return place;
  }

 private:
  Shape shape_;
  std::vector<std::int64_t> strides_;
  bool plain_ = false;
};

/// The elements of an operand by (row, index along the axis).
class Lines {
 public:
  Lines(const Operand& operand, std::int64_t axis) {
    const auto k = static_cast<std::size_t>(axis);
    const Places places(operand);
    starts_ = places.without(k, k + 1);
    stride_ = places.stride(k);
    extent_ = operand.type.shape[k];
  }
  std::int64_t lines() const { return starts_.count(); }
  std::int64_t extent() const { return extent_; }
  std::int64_t operator()(std::int64_t line, std::int64_t i) const {
    return starts_(line) + i * stride_;
  }

 private:
  Places starts_;
  std::int64_t stride_ = 0, extent_ = 0;
};

/// Reads an operand whose element type is not the kernel's own: statistics, weights, labels,
/// scalars.
class Reader {
 public:
  Reader() = default;
  explicit Reader(const Operand& operand) : Reader(operand, operand.type.shape) {}
  Reader(const Operand& operand, const Shape& over)
      : places_(operand, over), dtype_(operand.type.dtype) {}

  double number(const void* data, std::int64_t index) const {
    return with_type(dtype_, [&](auto tag) {
      return static_cast<double>(static_cast<const decltype(tag)*>(data)[places_(index)]);
    });
  }
  std::int64_t integer(const void* data, std::int64_t index) const {
    return with_type(dtype_, [&](auto tag) {
      return static_cast<std::int64_t>(static_cast<const decltype(tag)*>(data)[places_(index)]);
    });
  }

 private:
  Places places_;
  DType dtype_ = DType::float32;
};

/// Writes an operand of any element type; nothing where it is not read (a null address).
class Writer {
 public:
  Writer() = default;
  explicit Writer(const Operand& operand) : places_(operand), dtype_(operand.type.dtype) {}

  void operator()(void* data, std::int64_t index, double value) const {
    if (data == nullptr) return;
    with_type(dtype_, [&](auto tag) {
      using T = decltype(tag);
      if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
        static_cast<T*>(data)[places_(index)] = T(static_cast<float>(value));
      } else {
        static_cast<T*>(data)[places_(index)] = static_cast<T>(value);
      }
    });
  }

 private:
  Places places_;
  DType dtype_ = DType::float32;
};

/// A double as an element: half types round once more, from float.
template <class T>
T rounded(double value) {
  return static_cast<T>(static_cast<float>(value));
}
template <>
inline double rounded<double>(double value) {
  return value;
}

/// Axes [N, C, three spatial ones] of an operand with one to three spatial axes; missing ones come
/// first and have extent 1.
struct Map {
  std::int64_t extent[5] = {1, 1, 1, 1, 1};
  std::int64_t stride[5] = {0, 0, 0, 0, 0};

  Map() = default;
  explicit Map(const Operand& operand) {
    const Shape& shape = operand.type.shape;
    assert(shape.size() >= 3 && shape.size() <= 5 && operand.layout.is_strided());
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::size_t axis = i < 2 ? i : i + 5 - shape.size();
      extent[axis] = shape[i];
      if (operand.present) stride[axis] = operand.layout.strides[i];
    }
  }

  std::int64_t at(std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j,
                  std::int64_t k) const {
    return n * stride[0] + c * stride[1] + i * stride[2] + j * stride[3] + k * stride[4];
  }
};

/// A kernel for the element types Ts of input `typed`. prepare(request, T{}) gives the prepared
/// kernel.
template <class... Ts, class F>
Kernel kernel_for(std::string name, std::string op, F prepare, std::size_t typed = 0) {
  const auto refuse = [typed](const KernelRequest& request) -> std::optional<std::string> {
    const DType dtype = request.inputs[typed].type.dtype;
    if (((dtype_of<Ts>::value == dtype) || ...)) return std::nullopt;
    return "takes no " + std::string(name_of(dtype));
  };
  const auto prepare_one = [prepare, typed](const KernelRequest& request) {
    return with_type(TypeList<Ts...>{}, request.inputs[typed].type.dtype,
                     [&](auto tag) { return prepare(request, tag); });
  };
  return {std::move(name), std::move(op), refuse, propose_any_strides, prepare_one, true};
}

/// Prepares for float32 and float64; most operators.
template <class F>
Kernel float_kernel(std::string name, std::string op, F prepare, std::size_t typed = 0) {
  return kernel_for<float, double>(std::move(name), std::move(op), std::move(prepare), typed);
}

/// Prepares for the half types too.
template <class F>
Kernel any_float_kernel(std::string name, std::string op, F prepare, std::size_t typed = 0) {
  return kernel_for<float, double, Float16, BFloat16>(std::move(name), std::move(op),
                                                      std::move(prepare), typed);
}

/// A kernel that reads and writes numbers of any type.
template <class F>
Kernel untyped_kernel(std::string name, std::string op, F prepare) {
  return {std::move(name),     std::move(op),      refuse_nothing,
          propose_any_strides, std::move(prepare), true};
}

/// Prepares for all types; prepare(request, T{}) gets bool as a number of one byte.
template <class F>
Kernel number_kernel(std::string name, std::string op, F prepare) {
  return untyped_kernel(std::move(name), std::move(op), [prepare](const KernelRequest& request) {
    return with_type(request.inputs[0].type.dtype, [&](auto tag) {
      using T = decltype(tag);
      return prepare(request, std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>{});
    });
  });
}

inline void report(const KernelArguments& a, ErrorWord::Kind kind, std::int32_t node,
                   std::int64_t offending) {
  if (a.context != nullptr && a.context->error != nullptr) {
    a.context->error->report(kind, node, offending);
  }
}

}  // namespace tandem::reference
