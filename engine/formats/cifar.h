// The binary files of CIFAR-10 (3,073 bytes a record) and CIFAR-100 (3,074).
#pragma once

#include <string>
#include <vector>

#include "engine/formats/named_tensor.h"

namespace tandem {

/// `images` uint8 [N, 3, 32, 32] and `labels` uint8 [N]; CIFAR-100 also has `coarse_labels`. Which
/// of the two it is follows from the file's size. Error{data} with file and row (labels above 9 or
/// 99, incomplete records).
std::vector<NamedTensor> read_cifar(const std::string& path);

}  // namespace tandem
