// A tensor with the name under which a file stores it.
#pragma once

#include <string>

#include "engine/graph/host_tensor.h"

namespace tandem {

struct NamedTensor {
  std::string name;
  HostTensor tensor;
};

}  // namespace tandem
