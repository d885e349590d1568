// Tensors of other libraries: DLPack's DLManagedTensor, taken over and given away.
#include <dlpack/dlpack.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/graph/types.h"
#include "tandem/error.h"
#include "tandem/tensor.h"

namespace tandem::api {
namespace {

constexpr std::uint8_t bool_code = 6;  // kDLBool, which DLPack has since 0.8

struct ElementType {
  std::uint8_t code;
  std::uint8_t bits;
  DType dtype;
};
constexpr ElementType element_types[] = {
    {kDLFloat, 32, DType::float32}, {kDLFloat, 64, DType::float64},
    {kDLFloat, 16, DType::float16}, {kDLBfloat, 16, DType::bfloat16},
    {kDLInt, 8, DType::int8},       {kDLInt, 16, DType::int16},
    {kDLInt, 32, DType::int32},     {kDLInt, 64, DType::int64},
    {kDLUInt, 8, DType::uint8},     {kDLUInt, 16, DType::uint16},
    {kDLUInt, 32, DType::uint32},   {kDLUInt, 64, DType::uint64},
    {bool_code, 8, DType::boolean},
};

[[noreturn]] void refuse(std::string message, std::string expected, std::string got,
                         std::string fix = "") {
  throw Error(ErrorKind::usage, Diagnostic{.message = std::move(message),
                                           .expected = std::move(expected),
                                           .got = std::move(got),
                                           .fix = std::move(fix)});
}

std::string all_types() {
  std::string text;
  for (const ElementType& type : element_types)
    text += (text.empty() ? "" : ", ") + std::string(name_of(type.dtype));
  return text;
}

DType dtype_of_elements(const DLDataType& type) {
  for (const ElementType& known : element_types) {
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return known.dtype;
  }
  refuse("this element type of DLPack is not taken", all_types(),
         "code " + std::to_string(type.code) + " with " + std::to_string(type.bits) + " bits and " +
             std::to_string(type.lanes) + " lanes");
}

bool is_host(DLDeviceType type) {
  return type == kDLCPU || type == kDLCUDAHost || type == kDLROCMHost;
}

bool is_row_major(const DLTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  std::int64_t expected = 1;
  for (int axis = tensor.ndim; axis-- > 0;) {
    if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) return false;
    expected *= tensor.shape[axis];
  }
  return true;
}

/// Copies elements of any strides to `to`, which then points behind them.
void copy_elements(const DLTensor& tensor, int axis, const std::byte* from, std::size_t size,
                   std::byte*& to) {
  if (axis == tensor.ndim) {
    std::memcpy(to, from, size);
    to += size;
    return;
  }
  const std::int64_t step = tensor.strides[axis] * static_cast<std::int64_t>(size);
  for (std::int64_t i = 0; i < tensor.shape[axis]; ++i)
    copy_elements(tensor, axis + 1, from + i * step, size, to);
}

void release(DLManagedTensor* managed) {
  if (managed->deleter != nullptr) managed->deleter(managed);
}

/// What a tensor that was given away needs.
struct Given {
  Tensor tensor;
  std::vector<std::int64_t> shape;
  DLManagedTensor managed;
};

}  // namespace

Tensor Tensor::from_dlpack(DLManagedTensor* managed) {
  if (managed == nullptr) refuse("there is no tensor", "a DLManagedTensor", "a null pointer");
  const DLTensor& tensor = managed->dl_tensor;
  if (!is_host(tensor.device.device_type)) {
    refuse("this tensor lies on another device", "memory of the host",
           "device " + std::to_string(static_cast<int>(tensor.device.device_type)) + " of DLPack",
           "copy it to the host first");
  }
  const DType dtype = dtype_of_elements(tensor.dtype);
  if (tensor.ndim < 0) refuse("a tensor cannot have this rank", "", std::to_string(tensor.ndim));
  std::vector<std::int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  const std::size_t size = size_of(dtype);
  const TensorType type{dtype, shape};
  const bool is_valid =
      std::all_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent >= 0; });
  const std::size_t bytes = is_valid ? type.bytes() : 0;  // view_bytes refuses the shape
  const auto* const data = static_cast<const std::byte*>(tensor.data) + tensor.byte_offset;
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(data) % size == 0;
  if (bytes == 0 || (is_row_major(tensor) && is_aligned)) {
    // The owner takes it over only once the view is made, so that a refusal leaves it as it is.
    auto owner = std::make_shared<DLManagedTensor*>(nullptr);
    const std::shared_ptr<const void> releasing(owner.get(), [owner](const void*) {
      if (*owner != nullptr) release(*owner);
    });
    Tensor result =
        view_bytes(dtype, std::move(shape), {bytes == 0 ? nullptr : data, bytes}, releasing);
    *owner = managed;
    return result;
  }
  std::vector<std::byte> copy(bytes);
  if (is_row_major(tensor)) {
    std::memcpy(copy.data(), data, bytes);
  } else {
    std::byte* to = copy.data();
    copy_elements(tensor, 0, data, size, to);
  }
  Tensor result = copy_of_bytes(dtype, std::move(shape), copy);
  release(managed);
  return result;
}

DLManagedTensor* Tensor::to_dlpack() const {
  const auto found = std::find_if(std::begin(element_types), std::end(element_types),
                                  [&](const ElementType& known) { return known.dtype == dtype(); });
  if (found == std::end(element_types)) {
    refuse("DLPack has no such element type", all_types(), std::string(name_of(dtype())));
  }
  auto given = std::make_unique<Given>(Given{*this, shape(), {}});
  DLTensor& tensor = given->managed.dl_tensor;
  tensor.data = const_cast<std::byte*>(bytes().data());
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int>(given->shape.size());
  tensor.dtype = {found->code, found->bits, 1};
  tensor.shape = given->shape.data();
  given->managed.manager_ctx = given.get();
  given->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Given*>(self->manager_ctx);
  };
  return &given.release()->managed;
}

}  // namespace tandem::api
