// Tensors of the C library, from and to those of the C++ library.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "tandem/c_values.h"
#include "tandem/tensor.h"

/// In the order of names.
struct TandemTensors {
  std::vector<std::pair<std::string, tandem::api::Tensor>> items;
};

namespace tandem::c_library {

/// Throws Error{usage} where it is no TandemDType.
DType dtype_of(std::int32_t dtype, const std::string& name);

/// The name of a tensor in an array. Throws Error{usage} where it is null.
std::string name_of_element(const TandemTensor& tensor, std::size_t index, const char* array);

/// The extents of a TandemTensor or a field. Throws Error{usage}.
std::vector<std::int64_t> shape_of(const TandemTensor& tensor, const std::string& name);

/// The tensors by name. Their elements are the caller's, and stay valid until the call ends. Throws
/// Error{usage} for one that is no tensor, and for two of one name.
api::Tensors borrowed_tensors(const TandemTensor* tensors, std::size_t count, const char* argument);

/// The caller closes them.
TandemTensors* given_tensors(const api::Tensors& tensors);

}  // namespace tandem::c_library
