// Converts arrays of numpy or DLPack to tensors of the library, or back.
#pragma once

#include <string>

#include "python/binding/binding.h"
#include "tandem/tensor.h"

namespace tandem::python {

/// A copy of a numpy array, or of anything with __dlpack__, in host memory, row by row. Throws
/// Error{usage} for other objects, devices and element types.
api::Tensor array_of(const std::string& name, nb::handle object);

/// Arrays by name. One Error for all that are refused.
api::Tensors arrays_of(const nb::dict& feeds);

/// A numpy array with a copy of the bytes. Types that numpy lacks are those of ml_dtypes;
/// Error{usage} where that package is missing.
nb::object numpy_of(const std::string& name, const api::Tensor& tensor);

nb::dict numpy_of(const api::Tensors& tensors);

}  // namespace tandem::python
