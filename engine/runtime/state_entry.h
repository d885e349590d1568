// One thing in a StateStore: where it lies on its device.
#pragma once

#include <memory>
#include <string>

#include "engine/runtime/program.h"

namespace tandem {

struct StateStore::Entry {
  std::string name;
  std::string mirror_of;  // of a weight away from its master: the master's name
  StateKind kind = StateKind::parameter;
  TensorType type;
  Layout layout;
  Device* device = nullptr;
  std::unique_ptr<Memory> memory;  // null for a value without elements
};

}  // namespace tandem
