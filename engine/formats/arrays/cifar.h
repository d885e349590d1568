// The binary files of CIFAR-10 (3,073 bytes a record) and CIFAR-100 (3,074).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/formats/named_tensor.h"

namespace tandem {

/// `images` uint8 [N, 3, 32, 32] and `labels` uint8 [N]; CIFAR-100 also has `coarse_labels`. Only
/// those that are `wanted`; without it, all. Which of the two types of file it is follows from its
/// size, for which a packed file is unpacked once more. Error{data} with file and row (labels above
/// 9 or 99, incomplete records); Error{does_not_fit} where they take more memory than there is.
std::vector<NamedTensor> read_cifar(const std::string& path,
                                    const std::function<bool(std::string_view)>& wanted = {});

}  // namespace tandem
