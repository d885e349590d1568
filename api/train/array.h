// Converts between the public Array and the engine's HostTensor.
#pragma once

#include "engine/graph/host_tensor.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// The type of an array. Throws Error{usage} naming `name` where bytes, shape and type do not fit,
/// or a byte is no bool.
TensorType checked_type(const Array& array, const std::string& name);
/// Throws what `checked_type` throws.
HostTensor to_tensor(const Array& array, const std::string& name);
Array to_array(const HostTensor& tensor);

}  // namespace tandem::api
