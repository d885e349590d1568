#include "python/binding/arrays.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <typeinfo>
#include <utility>
#include <vector>

namespace tandem::python {
namespace {

using AnyArray = nb::ndarray<nb::ro>;
constexpr const char* what_is_taken = "a numpy array, or an object with __dlpack__, in host memory";

/// An element type of DLPack and of the library; `numpy`: whether numpy has the type.
struct ElementType {
  nb::dlpack::dtype_code code;
  int bits;
  DType type;
  bool numpy;
};
using Code = nb::dlpack::dtype_code;
constexpr ElementType element_types[] = {
    {Code::Float, 32, DType::float32, true},
    {Code::Float, 64, DType::float64, true},
    {Code::Float, 16, DType::float16, true},
    {Code::Bfloat, 16, DType::bfloat16, false},
    {Code::Int, 8, DType::int8, true},
    {Code::Int, 16, DType::int16, true},
    {Code::Int, 32, DType::int32, true},
    {Code::Int, 64, DType::int64, true},
    {Code::UInt, 8, DType::uint8, true},
    {Code::UInt, 16, DType::uint16, true},
    {Code::UInt, 32, DType::uint32, true},
    {Code::UInt, 64, DType::uint64, true},
    {Code::Bool, 8, DType::boolean, true},
    {Code::Float8_E4M3FN, 8, DType::float8_e4m3fn, false},
    {Code::Float8_E4M3FNUZ, 8, DType::float8_e4m3fnuz, false},
    {Code::Float8_E5M2, 8, DType::float8_e5m2, false},
    {Code::Float8_E5M2FNUZ, 8, DType::float8_e5m2fnuz, false},
    {Code::Float8_E8M0FNU, 8, DType::float8_e8m0fnu, false},
};

std::optional<DType> type_of(nb::dlpack::dtype type) {
  for (const ElementType& known : element_types) {
    if (static_cast<std::uint8_t>(known.code) == type.code && known.bits == type.bits &&
        type.lanes == 1)
      return known.type;
  }
  return std::nullopt;
}

std::string device_name(int type, int number) {
  // The numbers are those of DLPack.
  const char* name = nullptr;
  switch (type) {
    case 2:
      name = "cuda";
      break;
    case 8:
      name = "metal";
      break;
    case 10:
      name = "rocm";
      break;
    case 13:
      name = "cuda_managed";
      break;
    case 14:
      name = "oneapi";
      break;
    default:
      return "device " + std::to_string(type) + ":" + std::to_string(number) + " of DLPack";
  }
  return std::string(name) + ":" + std::to_string(number);
}

bool is_host(int type) {
  return type == 1 || type == 3 || type == 11;  // CPU, memory pinned by CUDA, by ROCm
}

std::string text_of(const nb::object& object) { return nb::str(nb::handle(object)).c_str(); }

std::string name_of_type(nb::handle object) {
  const nb::handle type = object.type();
  const std::string module = text_of(type.attr("__module__"));
  const std::string name = text_of(type.attr("__name__"));
  return module == "builtins" ? name : module + "." + name;
}

std::string message_of(const nb::python_error& error) { return text_of(nb::borrow(error.value())); }

Diagnostic of_array(const std::string& name, const char* message, std::string got) {
  return {.message = message, .path = name, .expected = what_is_taken, .got = std::move(got)};
}

void check_device(const std::string& name, nb::handle object) {
  if (!nb::hasattr(object, "__dlpack_device__")) return;
  try {
    // Items of an nb::tuple are read without a look at its length.
    const nb::object device = object.attr("__dlpack_device__")();
    const int type = nb::cast<int>(nb::object(device[0]));
    const int number = nb::cast<int>(nb::object(device[1]));
    if (is_host(type)) return;
    Diagnostic d = of_array(name, "this array lies on another device", device_name(type, number));
    d.fix = "copy it to the host first, in torch with .cpu()";
    refuse(std::move(d));
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;  // such as KeyboardInterrupt
    refuse(of_array(name, "the device of this array is not known", message_of(error)));
  } catch (const std::bad_cast&) {
    refuse(of_array(name, "the device of this array is not known", name_of_type(object)));
  }
}

/// Why an object gives no array, in the words of its own package.
std::string reason(nb::handle object) {
  try {
    object.attr("__dlpack__")();
  } catch (const nb::python_error& error) {
    if (!error.matches(PyExc_Exception)) throw;
    return name_of_type(object) + " (" + message_of(error) + ")";
  }
  return name_of_type(object);
}

std::optional<std::string> dtype_text(nb::handle object) {
  if (!nb::hasattr(object, "dtype")) return std::nullopt;
  return text_of(object.attr("dtype"));
}

/// Masked arrays of numpy give their elements as if there were no mask.
void refuse_masked(const std::string& name, nb::handle object) {
  if (!nb::hasattr(object, "mask") || !nb::hasattr(object, "filled")) return;
  if (!nb::cast<bool>(nb::bool_(nb::object(object.attr("mask").attr("any")())))) return;
  refuse({.message = "elements of this array are masked",
          .path = name,
          .expected = "an array without a mask",
          .fix = "give what is behind the mask a value: array.filled(0)"});
}

/// Copies rows of any strides to `to`, which then points to the byte after them.
void copy_rows(const AnyArray& array, std::size_t axis, const std::byte* from, std::byte*& to) {
  const std::size_t size = array.itemsize();
  if (axis == array.ndim()) {
    std::memcpy(to, from, size);
    to += size;
    return;
  }
  const std::size_t extent = array.shape(axis);
  const auto step =
      static_cast<std::ptrdiff_t>(array.stride(axis)) * static_cast<std::ptrdiff_t>(size);
  if (axis + 1 == array.ndim() && array.stride(axis) == 1) {
    std::memcpy(to, from, extent * size);
    to += extent * size;
    return;
  }
  for (std::size_t i = 0; i < extent; ++i)
    copy_rows(array, axis + 1, from + static_cast<std::ptrdiff_t>(i) * step, to);
}

bool is_row_major(const AnyArray& array) {
  std::int64_t expected = 1;
  for (std::size_t axis = array.ndim(); axis-- > 0;) {
    const auto extent = static_cast<std::int64_t>(array.shape(axis));
    if (extent != 1 && array.stride(axis) != expected) return false;
    expected *= extent;
  }
  return true;
}

}  // namespace

api::Tensor array_of(const std::string& name, nb::handle object) {
  if (!nb::hasattr(object, "__dlpack__"))
    refuse(of_array(name, "this is no array", name_of_type(object)));
  check_device(name, object);
  refuse_masked(name, object);
  AnyArray array;
  if (!nb::try_cast(object, array, false)) {
    const std::optional<std::string> dtype = dtype_text(object);
    refuse(of_array(name, "this array cannot be read",
                    (dtype ? *dtype + " in " : "") + reason(object)));
  }
  const std::optional<DType> dtype = type_of(array.dtype());
  if (!dtype) {
    refuse(of_array(name, "no input has this element type",
                    dtype_text(object).value_or("a type without a name")));
  }
  std::vector<std::int64_t> shape;
  for (std::size_t axis = 0; axis < array.ndim(); ++axis)
    shape.push_back(static_cast<std::int64_t>(array.shape(axis)));
  const auto* const data = static_cast<const std::byte*>(array.data());
  const std::size_t bytes = array.size() * array.itemsize();
  if (bytes > 0 && data == nullptr) {  // such as a FakeTensor of torch
    refuse(of_array(name, "this array has no memory", name_of_type(object)));
  }
  if (bytes == 0 || is_row_major(array))
    return api::Tensor::copy_of_bytes(*dtype, std::move(shape),
                                      {bytes == 0 ? nullptr : data, bytes});
  const auto rows = std::make_shared<std::vector<std::byte>>(bytes);
  std::byte* to = rows->data();
  copy_rows(array, 0, data, to);
  return api::Tensor::view_bytes(*dtype, std::move(shape), *rows, rows);
}

api::Tensors arrays_of(const nb::dict& feeds) {
  api::Tensors arrays;
  std::vector<Diagnostic> problems;
  for (const auto& [key, value] : feeds) {
    std::string name;
    if (!nb::try_cast(key, name)) {
      problems.push_back({.message = "the name of an array is no str", .got = name_of_type(key)});
      continue;
    }
    try {
      arrays[name] = array_of(name, value);
    } catch (const Error& error) {
      problems.insert(problems.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  if (!problems.empty()) throw Error(ErrorKind::usage, std::move(problems));
  return arrays;
}

nb::object numpy_of(const std::string& name, const api::Tensor& tensor) {
  const ElementType* type = nullptr;
  for (const ElementType& known : element_types) {
    if (tensor.dtype() == known.type) type = &known;
  }
  const std::string dtype(api::name(tensor.dtype()));
  if (type == nullptr)
    refuse({.message = "no array has this element type", .path = name, .got = dtype});
  const std::span<const std::byte> from = tensor.bytes();
  auto* const bytes = new std::vector<std::byte>(from.begin(), from.end());
  const nb::capsule owner(
      bytes, [](void* held) noexcept { delete static_cast<std::vector<std::byte>*>(held); });
  const std::vector<std::size_t> shape(tensor.shape().begin(), tensor.shape().end());
  nb::dlpack::dtype stored{static_cast<std::uint8_t>(type->code),
                           static_cast<std::uint8_t>(type->bits), 1};
  if (!type->numpy) stored.code = static_cast<std::uint8_t>(Code::UInt);
  static std::byte nothing[16];  // the address of arrays without elements
  void* const data = bytes->empty() ? static_cast<void*>(nothing) : bytes->data();
  const nb::ndarray<nb::numpy> result(data, shape.size(), shape.data(), owner, nullptr, stored);
  nb::object object = nb::cast(result);
  if (type->numpy) return object;
  return nb::module_::import_("tandem_train._arrays").attr("view_as")(object, dtype, name);
}

nb::dict numpy_of(const api::Tensors& tensors) {
  nb::dict result;
  for (const auto& [name, tensor] : tensors) result[text_object(name)] = numpy_of(name, tensor);
  return result;
}

}  // namespace tandem::python
