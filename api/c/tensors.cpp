#include "api/c/tensors.h"

#include <dlpack/dlpack.h>

#include <cstdint>
#include <memory>
#include <span>

#include "api/c/guarded.h"
#include "api/c/structs.h"
#include "engine/graph/types.h"

namespace tandem::c_library {
namespace {

static_assert(TANDEM_FLOAT32 == static_cast<int>(DType::float32));
static_assert(TANDEM_FLOAT64 == static_cast<int>(DType::float64));
static_assert(TANDEM_FLOAT16 == static_cast<int>(DType::float16));
static_assert(TANDEM_BFLOAT16 == static_cast<int>(DType::bfloat16));
static_assert(TANDEM_INT8 == static_cast<int>(DType::int8));
static_assert(TANDEM_INT16 == static_cast<int>(DType::int16));
static_assert(TANDEM_INT32 == static_cast<int>(DType::int32));
static_assert(TANDEM_INT64 == static_cast<int>(DType::int64));
static_assert(TANDEM_UINT8 == static_cast<int>(DType::uint8));
static_assert(TANDEM_UINT16 == static_cast<int>(DType::uint16));
static_assert(TANDEM_UINT32 == static_cast<int>(DType::uint32));
static_assert(TANDEM_UINT64 == static_cast<int>(DType::uint64));
static_assert(TANDEM_BOOL == static_cast<int>(DType::boolean));
static_assert(TANDEM_FLOAT8_E4M3FN == static_cast<int>(DType::float8_e4m3fn));
static_assert(TANDEM_FLOAT8_E4M3FNUZ == static_cast<int>(DType::float8_e4m3fnuz));
static_assert(TANDEM_FLOAT8_E5M2 == static_cast<int>(DType::float8_e5m2));
static_assert(TANDEM_FLOAT8_E5M2FNUZ == static_cast<int>(DType::float8_e5m2fnuz));
static_assert(TANDEM_FLOAT8_E8M0FNU == static_cast<int>(DType::float8_e8m0fnu));

/// The elements of a tensor of another library, which stays its owner's.
api::Tensor borrowed_dlpack(const DLManagedTensor& managed) {
  auto without_owner = std::make_unique<DLManagedTensor>();
  without_owner->dl_tensor = managed.dl_tensor;
  without_owner->deleter = [](DLManagedTensor* self) { delete self; };
  api::Tensor tensor = api::Tensor::from_dlpack(without_owner.get());
  without_owner.release();  // the tensor calls the deleter
  return tensor;
}

api::Tensor borrowed(const TandemTensor& tensor, const std::string& name) {
  const DType dtype = dtype_of(tensor.dtype, name);
  std::vector<std::int64_t> shape = shape_of(tensor, name);
  if (tensor.data == nullptr && tensor.bytes > 0)
    throw bad_argument(name, "the data of this tensor is NULL");
  const std::span bytes(static_cast<const std::byte*>(tensor.data), tensor.bytes);
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(tensor.data) % size_of(dtype) == 0;
  return is_aligned ? api::Tensor::view_bytes(dtype, std::move(shape), bytes)
                    : api::Tensor::copy_of_bytes(dtype, std::move(shape), bytes);
}

/// The error about a tensor with its name.
Error named(const Error& error, const std::string& name) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& d : diagnostics) {
    if (d.path.empty()) d.path = name;
  }
  return Error(error.kind(), std::move(diagnostics));
}

const std::pair<std::string, api::Tensor>& item(const TandemTensors* tensors, std::size_t index) {
  const auto& items = required(tensors, "tensors").items;
  if (index < items.size()) return items[index];
  throw bad_argument("index", "there is no such tensor",
                     "less than " + std::to_string(items.size()), std::to_string(index));
}

}  // namespace

DType dtype_of(std::int32_t dtype, const std::string& name) {
  if (dtype >= TANDEM_FLOAT32 && dtype <= TANDEM_FLOAT8_E8M0FNU) return static_cast<DType>(dtype);
  throw bad_argument(name, "there is no such element type", "a TandemDType", std::to_string(dtype));
}

std::string name_of_element(const TandemTensor& tensor, std::size_t index, const char* array) {
  if (tensor.name != nullptr) return tensor.name;
  throw bad_argument(std::string(array) + "[" + std::to_string(index) + "].name",
                     "this text is NULL");
}

std::vector<std::int64_t> shape_of(const TandemTensor& tensor, const std::string& name) {
  if (tensor.rank < 0)
    throw bad_argument(name, "a tensor cannot have this rank", "0 or more",
                       std::to_string(tensor.rank));
  if (tensor.rank > 0 && tensor.shape == nullptr)
    throw bad_argument(name, "the shape of this tensor is NULL");
  return {tensor.shape, tensor.shape + tensor.rank};
}

api::Tensors borrowed_tensors(const TandemTensor* tensors, std::size_t count,
                              const char* argument) {
  api::Tensors result;
  for (std::size_t i = 0; i < count; ++i) {
    const TandemTensor tensor = read_element(tensors, i, argument);
    const std::string name = name_of_element(tensor, i, argument);
    try {
      const bool is_new =
          result
              .emplace(name, tensor.dlpack != nullptr ? borrowed_dlpack(*tensor.dlpack)
                                                      : borrowed(tensor, name))
              .second;
      if (!is_new) throw bad_argument(name, "two tensors have this name");
    } catch (const Error& error) {
      throw named(error, name);
    }
  }
  return result;
}

TandemTensors* given_tensors(const api::Tensors& tensors) {
  return new TandemTensors{{tensors.begin(), tensors.end()}};
}

}  // namespace tandem::c_library

using namespace tandem::c_library;

size_t tandem_tensors_count(const TandemTensors* tensors) {
  return tensors == nullptr ? 0 : tensors->items.size();
}

TandemStatus tandem_tensors_at(const TandemTensors* tensors, size_t index, TandemTensor* tensor) {
  return guarded([&] {
    const auto& [name, found] = item(tensors, index);
    TandemTensor written{};
    written.name = name.c_str();
    written.shape = found.shape().data();
    written.data = found.bytes().data();
    written.bytes = found.bytes().size();
    written.dtype = static_cast<int32_t>(found.dtype());
    written.rank = static_cast<int32_t>(found.shape().size());
    write_struct(written, tensor, "tensor");
  });
}

TandemStatus tandem_tensors_dlpack(const TandemTensors* tensors, size_t index,
                                   DLManagedTensor** managed) {
  return guarded([&] { made(managed, "managed") = item(tensors, index).second.to_dlpack(); });
}

void tandem_tensors_close(TandemTensors** tensors) {
  if (tensors == nullptr) return;
  delete *tensors;
  *tensors = nullptr;
}
