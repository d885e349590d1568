// The tensors that a pickle of PyTorch's describes: where each lies in which storage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/formats/weights/pickle.h"
#include "engine/graph/types.h"

namespace tandem {

/// Elements offset + sum of index_i * strides_i of a storage.
struct TorchTensor {
  std::string name;
  TensorType type;
  std::string storage;              // the key of its file in the archive
  std::uint64_t storage_bytes = 0;  // as the pickle says
  std::uint64_t offset = 0;         // in elements, as are strides
  std::vector<std::uint64_t> strides;

  /// Whether its elements follow each other as a row-major tensor's do.
  bool is_contiguous() const;
};

struct TorchTensors {
  std::vector<TorchTensor> tensors;  // names are unique
  std::vector<std::string> notes;    // where they were found, what was skipped
};

/// The tensors of a dict of tensors, of a dict with such a dict under "state_dict", "model" or the
/// like, or of a dict of dicts with tensors, then named "encoder.NAME". Every tensor lies within
/// its storage. Throws Error{data} with file and tensor.
TorchTensors find_torch_tensors(const Pickle& pickle, const std::string& file);

}  // namespace tandem
