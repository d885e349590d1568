// NumPy's array files: .npy, and .npz (a zip of them, stored or deflated).
#pragma once

#include <string>
#include <vector>

#include "engine/formats/files.h"
#include "engine/formats/named_tensor.h"

namespace tandem {

/// Row-major and native byte order, whatever the file has. Error{data} with file and offset on
/// anything broken; object arrays (pickles), strings, structures and complex numbers are refused.
/// Error{does_not_fit} where the array takes more memory than there is.
HostTensor read_npy(const std::string& path);
/// All arrays in the archive's order, as NpzFile reads them.
std::vector<NamedTensor> read_npz(const std::string& path);

/// Writes and syncs. bfloat16 has no NumPy type: Error{usage}.
WrittenFile write_npy(const std::string& path, const HostTensor& tensor);
/// Writes and syncs; arrays are stored, or deflated with `compress`.
WrittenFile write_npz(const std::string& path, const std::vector<NamedTensor>& tensors,
                      bool compress = false);

}  // namespace tandem
