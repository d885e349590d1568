// Converts between the public Tensor and the engine's HostTensor, without copies.
#pragma once

#include <string>

#include "engine/graph/host_tensor.h"
#include "tandem/tensor.h"

namespace tandem::api {

/// The type of a tensor. Throws Error{usage} naming `name` where a byte is no bool.
TensorType checked_type(const Tensor& tensor, const std::string& name);
/// Shares the elements, which must only be read. Throws what `checked_type` throws.
HostTensor host_tensor(const Tensor& tensor, const std::string& name);
/// Shares the elements.
Tensor public_tensor(const HostTensor& tensor);

}  // namespace tandem::api
