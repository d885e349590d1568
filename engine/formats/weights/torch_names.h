// What PyTorch's files of weights name, and what that means here.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "engine/graph/types.h"

namespace tandem {

/// The types of names such as "torch.FloatStorage" and "torch.float32"; nothing for other names,
/// and for element types that Tandem does not have (complex numbers).
std::optional<DType> dtype_of_storage(std::string_view name);
std::optional<DType> dtype_of_torch(std::string_view name);
inline constexpr std::string_view untyped_storage = "torch.storage.UntypedStorage";

inline constexpr std::string_view rebuild_tensor = "torch._utils._rebuild_tensor_v2",
                                  rebuild_any_tensor = "torch._utils._rebuild_tensor_v3",
                                  rebuild_parameter = "torch._utils._rebuild_parameter";

/// For PickleRules: storages, element types, devices, sizes, and the functions that make tensors.
bool may_stand_in_weights(std::string_view name);
bool may_be_called_in_weights(std::string_view name);

}  // namespace tandem
