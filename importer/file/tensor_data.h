// ONNX's TensorProto to HostTensor and back, with every size checked before anything is read.
#pragma once

#include <optional>
#include <string>

#include "engine/graph/host_tensor.h"
#include "importer/file/onnx_content.h"

namespace tandem::importer {

std::optional<DType> dtype_from_onnx(std::int32_t data_type);  // nothing where unsupported
std::int32_t dtype_to_onnx(DType dtype);
std::string onnx_type_name(std::int32_t data_type);  // "FLOAT8E5M2", "999"

/// The number of elements, or nothing where an extent is negative or the product is above `most`.
std::optional<std::int64_t> checked_elements(const Shape& shape, std::int64_t most);

/// The tensor's type; throws Error for unsupported element types, bad extents, or too much data.
TensorType checked_type(const onnx::TensorProto& tensor, const OnnxFile::Content& content,
                        const std::string& where);

/// The tensor's elements. Inline raw data is viewed where that is possible: `content` must be the
/// owner of `tensor` and the result must not be written to.
HostTensor read_tensor(const onnx::TensorProto& tensor, const OnnxFile::Content& content,
                       const std::string& where);

/// Trained values in the element type that the file has for them; throws Error for a number that
/// does not fit, as 70,000 does not fit float16.
HostTensor narrowed(const HostTensor& values, const onnx::TensorProto& tensor,
                    const OnnxFile::Content& content);

/// `values` in the element type of `tensor`. Types of 4 and 2 bits have no DType: `values` are
/// their bytes, and stay as they are.
HostTensor in_type_of(const onnx::TensorProto& tensor, const HostTensor& values);

/// Replaces the elements of `tensor` (raw data), converted to its own element type.
void write_tensor(onnx::TensorProto& tensor, const HostTensor& values);

}  // namespace tandem::importer
