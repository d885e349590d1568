// Converts arrays of numpy or DLPack to arrays of the library, or back.
#pragma once

#include <map>
#include <string>

#include "python/binding/binding.h"
#include "tandem/tandem.h"

namespace tandem::python {

/// A copy of a numpy array, or of anything with __dlpack__, in host memory, row by row. Throws
/// Error{usage} for other objects, devices and element types.
api::Array array_of(const std::string& name, nb::handle object);

/// Arrays by name. One Error for all that are refused.
std::map<std::string, api::Array> arrays_of(const nb::dict& feeds);

/// A numpy array that owns the bytes. Types that numpy lacks are those of ml_dtypes; Error{usage}
/// where that package is missing.
nb::object numpy_of(const std::string& name, api::Array&& array);

nb::dict numpy_of(std::map<std::string, api::Array>&& arrays);

}  // namespace tandem::python
