// Which inputs are fed, and what their dimensions are under the user's bindings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "importer/session.h"

namespace tandem::importer {

struct BoundInput {
  const onnx::ValueInfoProto* info = nullptr;
  TensorType type;
  std::vector<std::string> dims;  // as the file says
  bool is_bound = false;          // all extents known; the others are reported
};

struct Bindings {
  std::vector<BoundInput> inputs;  // without initializers and constants
  /// Inputs that `bind` gives a value: one whole number or boolean, the same in every step.
  std::vector<std::pair<std::string, HostTensor>> values;
  std::int64_t file_batch = 0;  // axis 0 where the file fixes it, else 0
  std::int64_t batch = 0;       // axis 0 in this import
};

/// Reports (kind "free_dimension", "unsupported_type") what cannot be bound. Throws Error for names
/// in `bind` that the file does not have, and for inputs that `bind` cannot give a value.
Bindings bind_inputs(Session& session);

/// Dimensions as text: "batch", "784", "?".
std::vector<std::string> dims_of(const onnx::ValueInfoProto& info);

}  // namespace tandem::importer
