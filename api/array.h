// Between the public Array and the engine's HostTensor.
#pragma once

#include "engine/graph/host_tensor.h"
#include "tandem/tandem.h"

namespace tandem::api {

/// Throws Error{usage} naming `name` where bytes, shape and type do not fit.
HostTensor to_tensor(const Array& array, const std::string& name);
Array to_array(const HostTensor& tensor);

}  // namespace tandem::api
