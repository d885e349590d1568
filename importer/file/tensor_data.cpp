#include "importer/file/tensor_data.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "importer/file/external_data.h"

namespace tandem::importer {
namespace {

using Proto = onnx::TensorProto;

constexpr std::array<std::pair<std::int32_t, DType>, dtype_count> types{{
    {Proto::FLOAT, DType::float32},
    {Proto::DOUBLE, DType::float64},
    {Proto::FLOAT16, DType::float16},
    {Proto::BFLOAT16, DType::bfloat16},
    {Proto::INT8, DType::int8},
    {Proto::INT16, DType::int16},
    {Proto::INT32, DType::int32},
    {Proto::INT64, DType::int64},
    {Proto::UINT8, DType::uint8},
    {Proto::UINT16, DType::uint16},
    {Proto::UINT32, DType::uint32},
    {Proto::UINT64, DType::uint64},
    {Proto::BOOL, DType::boolean},
    {Proto::FLOAT8E4M3FN, DType::float8_e4m3fn},
    {Proto::FLOAT8E4M3FNUZ, DType::float8_e4m3fnuz},
    {Proto::FLOAT8E5M2, DType::float8_e5m2},
    {Proto::FLOAT8E5M2FNUZ, DType::float8_e5m2fnuz},
    {Proto::FLOAT8E8M0, DType::float8_e8m0fnu},
}};

// A bool has the values 0 and 1 only; files may hold any byte.
void settle_booleans(HostTensor& tensor) {
  auto* bytes = static_cast<unsigned char*>(tensor.data());
  for (std::size_t i = 0; i < tensor.bytes(); ++i) bytes[i] = bytes[i] != 0;
}

HostTensor from_raw(const Proto& tensor, const TensorType& type, const OnnxFile::Content& content,
                    const std::string& where) {
  const std::string& raw = tensor.raw_data();
  if (raw.size() != type.bytes()) {
    refuse(content.path, where, "size of raw_data",
           fmt::format("{} bytes for {}", type.bytes(), to_string(type)),
           fmt::format("{}", raw.size()));
  }
  if (raw.empty()) return HostTensor(type);
  const bool aligned = reinterpret_cast<std::uintptr_t>(raw.data()) % size_of(type.dtype) == 0;
  if (aligned && type.dtype != DType::boolean) {
    return HostTensor(type, const_cast<char*>(raw.data()), content.model);
  }
  HostTensor copy(type);
  std::memcpy(copy.data(), raw.data(), raw.size());
  if (type.dtype == DType::boolean) settle_booleans(copy);
  return copy;
}

template <class T, class Field>
void copy_field(HostTensor& to, const Field& from, const OnnxFile::Content& content,
                const std::string& where) {
  T* data = static_cast<T*>(to.data());
  for (int i = 0; i < from.size(); ++i) {
    const auto value = from[i];
    if constexpr (std::is_same_v<T, bool>) {
      data[i] = value != 0;
    } else if constexpr (std::is_integral_v<T>) {
      data[i] = static_cast<T>(value);
      if (static_cast<decltype(value)>(data[i]) != value) {
        refuse(content.path, where, "an element does not fit its type", to_string(to.type()),
               std::to_string(value));
      }
    } else if constexpr (std::is_floating_point_v<T>) {
      data[i] = value;
    } else {  // the 16-bit types, stored as their bits
      data[i].bits = static_cast<std::uint16_t>(value);
    }
  }
}

HostTensor from_fields(const Proto& tensor, const TensorType& type,
                       const OnnxFile::Content& content, const std::string& where) {
  const std::int64_t count = type.elements();
  const auto check = [&](int size) {
    if (size != count) {
      refuse(content.path, where, "number of elements",
             fmt::format("{} for {}", count, to_string(type)), std::to_string(size));
    }
  };
  HostTensor result;
  if (is_float8(type.dtype)) {  // a code in each element of the field
    check(tensor.int32_data_size());
    result = HostTensor(type);
    copy_field<std::uint8_t>(result, tensor.int32_data(), content, where);
    return result;
  }
  with_type(type.dtype, [&](auto tag) {
    using T = decltype(tag);
    const auto copy = [&](const auto& field) {
      check(field.size());
      result = HostTensor(type);
      copy_field<T>(result, field, content, where);
    };
    if constexpr (std::is_same_v<T, float>) {
      copy(tensor.float_data());
    } else if constexpr (std::is_same_v<T, double>) {
      copy(tensor.double_data());
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      copy(tensor.int64_data());
    } else if constexpr (std::is_same_v<T, std::uint64_t> || std::is_same_v<T, std::uint32_t>) {
      copy(tensor.uint64_data());
    } else {
      copy(tensor.int32_data());
    }
  });
  return result;
}

}  // namespace

std::optional<DType> dtype_from_onnx(std::int32_t data_type) {
  for (const auto& [onnx_type, dtype] : types) {
    if (onnx_type == data_type) return dtype;
  }
  return std::nullopt;
}

std::int32_t dtype_to_onnx(DType dtype) {
  for (const auto& [onnx_type, type] : types) {
    if (type == dtype) return onnx_type;
  }
  return Proto::UNDEFINED;
}

std::string onnx_type_name(std::int32_t data_type) {
  if (!onnx::TensorProto_DataType_IsValid(data_type)) return std::to_string(data_type);
  return onnx::TensorProto_DataType_Name(static_cast<onnx::TensorProto_DataType>(data_type));
}

std::optional<std::int64_t> checked_elements(const Shape& shape, std::int64_t most) {
  // A zero extent does not excuse the others: views and strides multiply them as well.
  std::int64_t count = 1;
  bool empty = false;
  for (std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(count, extent, &count) || count > most) {
      return std::nullopt;
    }
  }
  return empty ? 0 : count;
}

TensorType checked_type(const Proto& tensor, const OnnxFile::Content& content,
                        const std::string& where) {
  const auto dtype = dtype_from_onnx(tensor.data_type());
  if (!dtype) {
    refuse(content.path, where, "element type is not supported", dtype_names(),
           onnx_type_name(tensor.data_type()));
  }
  if (tensor.dims_size() > content.limits.rank) {
    refuse(content.path, where, "too many axes", "at most " + std::to_string(content.limits.rank),
           std::to_string(tensor.dims_size()));
  }
  TensorType type{*dtype, Shape(tensor.dims().begin(), tensor.dims().end())};
  const auto most = content.limits.tensor_bytes / static_cast<std::int64_t>(size_of(*dtype));
  if (!checked_elements(type.shape, most)) {
    refuse(content.path, where, "bad shape",
           fmt::format("extents >= 0 and at most {} bytes", content.limits.tensor_bytes),
           to_string(type.shape));
  }
  return type;
}

HostTensor read_tensor(const Proto& tensor, const OnnxFile::Content& content,
                       const std::string& where) {
  const TensorType type = checked_type(tensor, content, where);
  const int fields = (tensor.float_data_size() > 0) + (tensor.int32_data_size() > 0) +
                     (tensor.int64_data_size() > 0) + (tensor.uint64_data_size() > 0) +
                     (tensor.double_data_size() > 0) + (tensor.string_data_size() > 0) +
                     !tensor.raw_data().empty();
  const bool external = tensor.data_location() == Proto::EXTERNAL;
  if (tensor.has_segment()) refuse(content.path, where, "tensors in segments are not supported");
  if (fields > (external ? 0 : 1)) {
    refuse(content.path, where, "the tensor has its data in several places", "one",
           std::to_string(fields + external));
  }
  if (external) {
    if (!content.external) refuse(content.path, where, "external data has no place here");
    HostTensor result = content.external->read(tensor, type);
    if (type.dtype == DType::boolean) settle_booleans(result);
    return result;
  }
  if (tensor.has_raw_data() && (fields == 0 || !tensor.raw_data().empty()))
    return from_raw(tensor, type, content, where);
  return from_fields(tensor, type, content, where);
}

HostTensor narrowed(const HostTensor& values, const Proto& tensor,
                    const OnnxFile::Content& content) {
  const auto dtype = dtype_from_onnx(tensor.data_type());
  if (!dtype || *dtype == values.dtype()) return values;
  HostTensor narrow = values.converted(*dtype);
  for (std::int64_t i = 0; i < values.type().elements(); ++i) {
    if (!std::isfinite(values.number(i)) || std::isfinite(narrow.number(i))) continue;
    refuse(content.path, tensor.name(),
           fmt::format("a trained number does not fit the file's {}", name_of(*dtype)), "",
           fmt::format("{}", values.number(i)),
           "export the weights as they are, in float32: `--to FILE.safetensors`");
  }
  return narrow;
}

HostTensor in_type_of(const Proto& tensor, const HostTensor& values) {
  return values.converted(dtype_from_onnx(tensor.data_type()).value_or(values.dtype()));
}

void write_tensor(Proto& tensor, const HostTensor& values) {
  const HostTensor converted = in_type_of(tensor, values);
  tensor.clear_float_data();
  tensor.clear_int32_data();
  tensor.clear_int64_data();
  tensor.clear_uint64_data();
  tensor.clear_double_data();
  tensor.clear_external_data();
  tensor.clear_data_location();
  if (converted.bytes() == 0) {
    tensor.set_raw_data("");
  } else {
    tensor.set_raw_data(converted.data(), converted.bytes());
  }
}

}  // namespace tandem::importer
